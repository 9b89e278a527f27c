//! New storage folder, which appears at its path only when it is complete. So no command takes an
//! incomplete filter for a complete one.

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
    /// Begins an empty folder at `place` with `ending` after its name. Replaces the folder of a
    /// killed command.
    pub(super) fn begin(place: &Path, ending: &str) -> anyhow::Result<(Self, Folder)> {
        let mut aside = place.as_os_str().to_owned();
        aside.push(ending);
        let aside = PathBuf::from(aside);
        // A running command has the folder locked, so this line fails.
        drop(Folder::open(&aside)?);
        removed(fs::remove_dir_all(&aside))
            .with_context(|| format!("{} cannot be removed", aside.display()))?;
        let folder = Folder::open(&aside)?;
        Ok((Self { aside, place: place.to_owned() }, folder))
    }

    /// Renames the folder to its final path, where no folder with files may be. The folder must be
    /// closed.
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

/// Returns success for the removal of a file or folder that does not exist.
pub(super) fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
