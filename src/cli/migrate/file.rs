//! Files with a dump of a filter of RedisBloom.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, anyhow};
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::{self, DumpError, DumpFormatError};

use super::super::bar::Bar;

/// Reads a filter from the file at `path`. Refuses a filter whose layers take more than `limit`
/// bytes.
pub(in crate::cli) fn read(path: &Path, limit: u64, bar: &Bar) -> anyhow::Result<Filter> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    // A pipe reports the length 0, so the bar shows no total.
    let all = file.metadata().with_context(name)?.len();
    dump::read(&mut bar.reading(file, all), limit).map_err(|problem| match problem {
        DumpError { problem: DumpFormatError::Io(error), .. } => anyhow!(error).context(name()),
        problem => anyhow!("{}, {problem}", path.display()),
    })
}

/// Writes a filter to a new file at `path`, and syncs the file. Removes the file after a failure.
pub(in crate::cli) fn write(path: &Path, filter: &Filter, bar: &Bar) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).open(path).with_context(name)?;
    let mut writer = BufWriter::new(bar.writing(&file, dump::len(filter)));
    let written = dump::write(filter, &mut writer).and_then(|()| writer.flush());
    let written = written.and_then(|()| file.sync_all()).inspect_err(|_| {
        // This function has created the file. The caller gets the first error, so an error of the
        // removal is ignored.
        let _ = std::fs::remove_file(path);
    });
    written.with_context(name)
}
