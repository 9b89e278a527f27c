//! `urlseen limits raise`: sets the limit of one group.

use std::io::Write;

use urlseen_core::storage::Folder;
use urlseen_engine::config::Config;

use super::super::context::runtime;
use super::super::settings::Settings;
use super::super::start::usage;
use super::super::{Outcome, partitions};
use crate::admin::printable::{printable, stdout};
use crate::admin::{AdminClient, ClientError, Raise};

/// Set the limit of one group, in place of the max of its rule.
///
/// The limit applies to the items that the daemon tests from now on, and stays in the storage
/// folder. It counts all unseen items of the group since the start of the filter. To lower it
/// again, use the command again. Items that are already on the over-limit list stay there: put them
/// back with urlseen limits requeue. If the crawl has several partitions, each has its share, as
/// with the max of a rule.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen limits raise --limit hosts --group shop.example --max 5000
  urlseen limits raise --limit years --group news.example/archive/* --max 100000")]
pub(super) struct RaiseArgs {
    #[command(flatten)]
    settings: Settings,
    /// The name of the rule, as urlseen limits list shows it
    #[arg(long, value_name = "NAME")]
    limit: String,
    /// The whole name of the group, as urlseen limits list shows it
    #[arg(long, value_name = "NAME")]
    group: String,
    /// The maximum number of unseen items of the group
    #[arg(long, value_name = "N")]
    max: u64,
}

pub(super) fn run(args: &RaiseArgs) -> anyhow::Result<Outcome> {
    let RaiseArgs { settings, limit, group, max } = args;
    let raise = Raise { limit: limit.clone(), group: group.clone(), max: *max };
    let all = settings.load_all()?;
    if let Some(config) = all.first()
        && !config.limits.iter().any(|rule| rule.name == *limit)
    {
        let names: Vec<_> = config.limits.iter().map(|rule| format!("{:?}", rule.name)).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(usage(format!("no [[limit]] has the name {limit:?}; there are: {names}")));
    }
    let runtime = runtime()?;
    let outcome = partitions::each(all, |config| {
        let client = AdminClient::new(&config.storage.dir);
        match client.and_then(|client| runtime.block_on(client.raise(&raise))) {
            Err(ClientError::NoDaemon { .. }) => alone(&config, &raise)?,
            answered => answered?,
        }
        Ok(Outcome::Done)
    })?;
    let group = printable(group.as_bytes(), None);
    writeln!(stdout(), "the limit of {group} is {max} now")?;
    Ok(outcome)
}

/// Sets the limit while no daemon runs.
fn alone(config: &Config, Raise { limit, group, max }: &Raise) -> anyhow::Result<()> {
    let folder = Folder::open(&config.storage.dir)?;
    let rule = config.limits.iter().find(|rule| rule.name == *limit).expect("it was found");
    let mut raised = folder.raised();
    raised.set(rule, group, *max)?;
    raised.write(folder.dir())?;
    Ok(())
}
