//! Files with a dump of a filter of RedisBloom.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use super::{Progress, TransferError};
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::redisbloom::dump::{self, DumpError, DumpFormatError};

/// Reads a filter from the file at `path`. Refuses one whose layers take more than `limit` bytes.
pub(crate) fn read(
    path: &Path,
    limit: u64,
    progress: Progress<'_>,
) -> Result<Filter, TransferError> {
    let failed = |source| TransferError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    // A pipe has the length 0, so its total is not known.
    let all = file.metadata().map_err(failed)?.len();
    let mut counted = Counted { inner: file, done: 0, all, progress };
    dump::read(&mut counted, limit).map_err(|problem| match problem {
        DumpError { problem: DumpFormatError::Io(source), .. } => failed(source),
        problem => TransferError::Dump { path: path.to_owned(), problem },
    })
}

/// Writes a filter to a new file at `path`, and syncs it. Leaves no file if it fails.
pub(crate) fn write(
    path: &Path,
    filter: &Filter,
    progress: Progress<'_>,
) -> Result<(), TransferError> {
    let failed = |source| TransferError::File { path: path.to_owned(), source };
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let counted = Counted { inner: file, done: 0, all: dump::len(filter), progress };
    let mut writer = BufWriter::new(counted);
    let written = dump::write(filter, &mut writer).and_then(|()| writer.flush());
    let written = written.and_then(|()| writer.get_ref().inner.sync_all());
    written.map_err(|source| {
        // The file was not there before. The first error is the one to report.
        let _ = std::fs::remove_file(path);
        failed(source)
    })
}

/// File that reports the bytes read or written.
struct Counted<'a> {
    inner: File,
    done: u64,
    all: u64,
    progress: Progress<'a>,
}

impl Counted<'_> {
    fn count(&mut self, bytes: usize) -> usize {
        self.done += bytes as u64;
        (self.progress)(self.done, self.all);
        bytes
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        Ok(self.count(read))
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// Most bytes that are written between two reports of progress.
        const STEP: usize = 1 << 20;
        let written = self.inner.write(&bytes[..bytes.len().min(STEP)])?;
        Ok(self.count(written))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
