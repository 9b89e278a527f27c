//! `urlseen limits`: lists and requeues the unseen items that are over a limit, and raises limits.

mod raise;
mod table;

use std::io::Write;

use indicatif::HumanCount;

use super::bar::Bar;
use super::context::Context;
use super::settings::Settings;
use super::{Outcome, partitions};
use crate::admin::printable::{printable, say, stdout};
use crate::crawl::over_limit::{OverLimitItem, OverLimitList};
use raise::RaiseArgs;

/// List or requeue the unseen items that are over a limit, and raise the limits of groups.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen limits list     # the groups with most items over a limit
  urlseen limits requeue")]
pub(super) struct LimitsArgs {
    #[command(subcommand)]
    command: LimitsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LimitsCommand {
    /// Show the groups that have items on the over-limit list, with the numbers of these items.
    #[command(after_help = "\
Examples:
  urlseen limits list --group shop.example
  urlseen limits list --items --json")]
    List {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        wanted: Wanted,
        /// Maximum number of groups to show, those with most items; 0 shows all
        #[arg(long, value_name = "N", default_value_t = 20)]
        most: usize,
        /// Show the items instead of the groups
        #[arg(long)]
        items: bool,
        /// Print a JSON object for each group or item
        #[arg(long)]
        json: bool,
    },
    /// Put items from the over-limit list back at the end of the source.
    ///
    /// Raise the limit first: the daemon tests each item again, and an item that is still over a
    /// limit returns to the list. An item goes back byte for byte. Entries that urlseen did not
    /// write stay on the list. If there are any, the exit status is 1.
    #[command(after_help = "\
Examples:
  urlseen limits requeue
  urlseen limits requeue --limit hosts --group shop.example")]
    Requeue {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        wanted: Wanted,
    },
    Raise(RaiseArgs),
}

/// Choice of items on the over-limit list.
#[derive(Debug, clap::Args)]
struct Wanted {
    /// Only items over the limit of the rule with this name. Default: all rules
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// Only items of groups whose name contains this text. Default: all groups
    #[arg(long, value_name = "TEXT")]
    group: Option<String>,
}

impl Wanted {
    fn has(&self, OverLimitItem { reason, .. }: &OverLimitItem) -> bool {
        self.limit.as_ref().is_none_or(|limit| reason.limit == *limit)
            && self.group.as_ref().is_none_or(|group| reason.group.contains(group))
    }
}

pub(super) fn run(args: &LimitsArgs) -> anyhow::Result<Outcome> {
    let settings = match &args.command {
        LimitsCommand::List { settings, .. } | LimitsCommand::Requeue { settings, .. } => settings,
        LimitsCommand::Raise(args) => return raise::run(args),
    };
    partitions::each(settings.load_all()?, |config| {
        let context = Context::new(config)?;
        context.runtime.block_on(async {
            let list = OverLimitList::open(&context.config).await?;
            match &args.command {
                LimitsCommand::List { wanted, most, items: true, json, .. } => {
                    table::items(list, wanted, *most, *json).await
                }
                LimitsCommand::List { wanted, most, json, .. } => {
                    table::groups(list, wanted, *most, *json).await
                }
                LimitsCommand::Requeue { wanted, .. } => requeue(list, wanted).await,
                LimitsCommand::Raise(_) => unreachable!("it needs no list"),
            }
        })
    })
}

/// Wanted items, each with its fingerprint in hex.
type WantedItems = Vec<(Vec<u8>, OverLimitItem)>;

/// Calls `visit` with the items of the list that are wanted. Returns the number of entries that
/// another program wrote.
async fn each(
    list: &mut OverLimitList,
    wanted: &Wanted,
    mut visit: impl AsyncFnMut(&mut OverLimitList, WantedItems) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let (bar, found, mut seen) = (Bar::counting("items"), list.len().await?, 0);
    let (mut cursor, mut foreign) = (0, 0);
    loop {
        let (next, page) = list.scan(cursor).await?;
        seen += page.len() as u64;
        let mut items = Vec::new();
        for (fingerprint, item) in page {
            match item {
                Some(item) if wanted.has(&item) => items.push((fingerprint, item)),
                Some(_) => {}
                None => foreign += 1,
            }
        }
        visit(list, items).await?;
        bar.show(seen.min(found), found);
        cursor = next;
        if cursor == 0 {
            return Ok(foreign);
        }
    }
}

async fn requeue(mut list: OverLimitList, wanted: &Wanted) -> anyhow::Result<Outcome> {
    let mut moved = 0;
    let foreign = each(&mut list, wanted, async |list, items| {
        moved += list.requeue(&items).await?;
        Ok(())
    })
    .await?;
    let stay = HumanCount(list.len().await?);
    let (source, _) = list.names();
    writeln!(stdout(), "{} put back to {source}, {stay} stay", HumanCount(moved))?;
    Ok(told_of(foreign, &list))
}

/// Tells of entries that another program wrote, if there are any.
fn told_of(foreign: u64, list: &OverLimitList) -> Outcome {
    if foreign == 0 {
        return Outcome::Done;
    }
    let (_, name) = list.names();
    let name = printable(name.as_bytes(), None);
    say(format_args!("urlseen: {foreign} entries of {name} stay: urlseen did not write them"));
    Outcome::BadInput
}
