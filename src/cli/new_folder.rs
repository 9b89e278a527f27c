//! New storage folder, which appears at its path only when it is complete. So no command can use an
//! incomplete filter.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use urlseen_core::storage::Folder;

/// New storage folder under a temporary name beside its final path.
pub(super) struct NewFolder {
    aside: PathBuf,
    place: PathBuf,
}

impl NewFolder {
    /// Creates an empty folder beside `place`. The folder's name is the name of `place`, followed
    /// by `ending`. Replaces a folder that a killed command has left there.
    pub(super) fn begin(place: &Path, ending: &str) -> anyhow::Result<(Self, Folder)> {
        let mut aside = place.as_os_str().to_owned();
        aside.push(ending);
        let aside = PathBuf::from(aside);
        // If another command still uses the folder, it holds the lock, and this line fails.
        drop(Folder::open(&aside)?);
        removed(fs::remove_dir_all(&aside))
            .with_context(|| format!("{} cannot be removed", aside.display()))?;
        let folder = Folder::open(&aside)?;
        Ok((Self { aside, place: place.to_owned() }, folder))
    }

    /// Renames the folder to its final path. Fails if a file, or a folder with files, is at that
    /// path. The caller must have closed the folder.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { aside, place } = self;
        let failed = || format!("{} cannot be renamed to {}", aside.display(), place.display());
        // A rename does not replace a file or a folder with files.
        fs::rename(&aside, &place).with_context(failed)?;
        let above = place.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let synced = File::open(above).and_then(|above| above.sync_all());
        synced.with_context(|| format!("{} cannot be synced", above.display()))
    }
}

/// Turns the error of a removal into success if the file or folder did not exist.
pub(super) fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
