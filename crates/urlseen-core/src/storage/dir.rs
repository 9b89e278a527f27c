//! The directory of a storage folder. Small files are written under a temporary name and then
//! renamed.

use std::io;
use std::sync::Arc;

use super::disk::{Disk, read_all};

/// Suffix of temporary names. A file with this suffix is incomplete and does not count.
pub(super) const ASIDE: &str = ".tmp";

/// Directory of a storage folder, on some disk.
pub(super) type Dir = Arc<dyn Disk>;

impl dyn Disk {
    /// Removes a file if it exists.
    pub(super) fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Reads all of a file; `None` if there is no such file.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.open(name) {
            Ok(file) => read_all(&*file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file under its temporary name and syncs it. The next step is a rename to the final
    /// name.
    pub(super) fn write_aside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = self.create(&aside(name))?;
        file.append(bytes)?;
        file.sync()
    }

    /// Renames a file from its temporary name to its final name.
    pub(super) fn replace(&self, name: &str) -> io::Result<()> {
        self.rename(&aside(name), name)
    }
}

/// Returns the temporary name of a file that is being written.
pub(super) fn aside(name: &str) -> String {
    format!("{name}{ASIDE}")
}
