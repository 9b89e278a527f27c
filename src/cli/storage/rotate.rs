//! Rotation of a filter: an empty filter in place of the present one, while the crawl runs or not.

use std::io::Write;
use std::path::PathBuf;

use tokio::runtime::Runtime;
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{Folder, Head};
use urlseen_engine::config::{Config, SourceKind};

use super::super::context::runtime;
use super::super::start::{self, usage};
use super::Outcome;
use crate::admin::printable::stdout;
use crate::admin::{AdminClient, ClientError, Rotation};
use crate::crawl::upkeep::Upkeep;

/// Begins an empty filter with the configured parameters. Keeps the earlier filter beside it, or
/// deletes it. If a daemon runs, the daemon does it, and `is_running` becomes true.
pub(super) fn rotate(
    config: &Config,
    drop: bool,
    is_running: &mut bool,
) -> anyhow::Result<Outcome> {
    if config.filter.place != FilterPlace::Local {
        return Err(usage(
            "only a filter in a storage folder can be rotated. For a filter in Redis, stop the \
             daemons, set another filter.key, and run urlseen storage adopt",
        ));
    }
    let dir = &config.storage.dir;
    let (runtime, spec) = (runtime()?, config.filter_spec()?);
    let fields = spec.fields().into_iter().map(|(name, value)| (name.to_owned(), value));
    let rotation = Rotation { spec: fields.collect(), drop };
    let rotated = AdminClient::new(dir).and_then(|it| runtime.block_on(it.rotate(&rotation)));
    let earlier = match rotated {
        Err(ClientError::NoDaemon { .. }) => alone(config, drop, &runtime)?,
        rotated => {
            *is_running = true;
            rotated?.earlier
        }
    };
    let earlier =
        earlier.map_or_else(|| "deleted".to_owned(), |earlier| format!("in {}", earlier.display()));
    let dir = dir.display();
    writeln!(stdout(), "{dir} holds an empty filter now, and the earlier filter is {earlier}")?;
    Ok(Outcome::Done)
}

/// Rotates the filter while no daemon runs. Returns the folder with the earlier filter if there is
/// one.
fn alone(config: &Config, drop: bool, runtime: &Runtime) -> anyhow::Result<Option<PathBuf>> {
    let mut folder = Folder::open(&config.storage.dir)?;
    let spec = start::keeping(config)?.spec;
    let at = folder.dir().display().to_string();
    let Some(header) = folder.header() else {
        anyhow::bail!("the storage folder {at} is new: it holds no filter");
    };
    let ours = RandomId::new(header.filter());
    let upkeep = if config.source.kind == SourceKind::None {
        None
    } else {
        Some(runtime.block_on(start::lease(config, Some(&mut folder)))?)
    };
    let standing = upkeep.as_ref().map(Upkeep::standing);
    if let Some(theirs) = standing.and_then(|it| it.filter).filter(|&theirs| theirs != ours) {
        anyhow::bail!(
            "the crawl in Redis belongs to the filter {theirs}, and {at} holds the filter {ours}: \
             run urlseen storage adopt first"
        );
    }
    let head = standing.and_then(|it| it.head).unwrap_or(Head::START);
    let rotated = folder.rotate(&spec, head).map_err(|not| not.reason)?;
    let earlier = rotated.earlier.dir().to_owned();
    if drop {
        rotated.earlier.remove()?;
    }
    if let Some(upkeep) = upkeep {
        let filter = rotated.folder.header().expect("the folder was begun").filter();
        runtime.block_on(upkeep.tie(RandomId::new(filter), head))?;
    }
    Ok((!drop).then_some(earlier))
}
