//! Counts time for the generations of a filter that urlseen could not count by itself.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use urlseen_core::filter::expire_after::shown;
use urlseen_core::storage::Folder;

use super::super::start::usage;
use super::Outcome;
use crate::admin::printable::stdout;

/// Adds a time to that of the generations in a folder.
pub(super) fn catch_up(dir: &Path, time: Duration) -> anyhow::Result<Outcome> {
    let (at, mut folder) = (dir.display(), Folder::open(dir)?);
    let header = folder.header().map(|header| header.spec().filter.parameters.expire_after());
    let Some(Some(expire_after)) = header else {
        return Err(usage(format!("{at} holds no filter whose fingerprints expire")));
    };
    let Some(timing) = folder.timing() else {
        return Err(usage(format!("{at} was not used yet, so no time is missing")));
    };
    folder.record_timing(&timing.later(time))?;
    let (time, window) = (shown(time), expire_after.window());
    writeln!(stdout(), "{at}: {time} are counted; a URL passes again {window}")?;
    Ok(Outcome::Done)
}
