//! Functions that write a file completely or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::PlotError;

/// Checks that a file can be written at this path.
pub(super) fn check(path: &Path) -> Result<(), PlotError> {
    let beside = place(path)?;
    let failed = |reason| PlotError::Write { path: path.to_owned(), reason };
    File::create(&beside).and_then(|_| fs::remove_file(&beside)).map_err(failed)
}

/// Returns the path of the temporary file that is written first. Fails if `path` exists and is not
/// a file.
fn place(path: &Path) -> Result<PathBuf, PlotError> {
    // A folder or a device must not be replaced by a file.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(PlotError::NoFile(path.to_owned()));
    }
    let nameless = || PlotError::Write {
        path: path.to_owned(),
        reason: io::ErrorKind::InvalidFilename.into(),
    };
    beside(path).ok_or_else(nameless)
}

/// Replaces the file at `path` by a file with these bytes. Writes the bytes to a temporary file
/// first, then renames that file.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), PlotError> {
    let beside = place(path)?;
    let failed = |reason| PlotError::Write { path: path.to_owned(), reason };
    let written = write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    written.map_err(|reason| {
        // If the temporary file cannot be removed, the first error is still the one to report.
        let _ = fs::remove_file(&beside);
        failed(reason)
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns the path of a temporary file in the same folder. Its name contains the process id, so no
/// other process uses it.
fn beside(path: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}.tmp", std::process::id()));
    Some(path.with_file_name(name))
}
