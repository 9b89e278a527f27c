//! A new storage folder, which is there once all of it is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::{FilterSpec, Parameters};
use urlseen_core::storage::{Folder, Rebase, StorageSpec};

use super::super::operand::Operand;
use super::AT;

/// A storage folder that is put together beside its place.
pub(super) struct NewFolder {
    folder: Folder,
    aside: PathBuf,
    place: PathBuf,
}

impl NewFolder {
    /// Begins a folder with a fresh id for what `a` is of.
    pub(super) fn begin(place: &Path, a: &Operand, parameters: Parameters) -> anyhow::Result<Self> {
        let aside = aside(place);
        // What a union that was killed has left; one that is under way has it locked.
        drop(Folder::open(&aside)?);
        match fs::remove_dir_all(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("{} cannot be removed", aside.display()));
            }
            _ => {}
        }
        let mut folder = Folder::open(&aside)?;
        let filter = FilterSpec {
            parameters,
            algorithm: a.config.fingerprint.algorithm,
            keep_fragments: a.config.fingerprint.keep_fragments,
        };
        let spec = StorageSpec { crawl: a.config.crawl.name.clone(), filter };
        folder.begin(&spec, RandomId::random().get(), AT)?;
        Ok(Self { folder, aside, place: place.to_owned() })
    }

    /// The filter of the folder, to be written.
    pub(super) fn rebase(&mut self) -> io::Result<Rebase<'_>> {
        self.folder.rebase(AT)
    }

    /// Puts the folder in its place, where nothing may be.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { folder, aside, place } = self;
        drop(folder);
        let failed = || format!("{} cannot be renamed to {}", aside.display(), place.display());
        // Neither a file nor a folder with anything in it is replaced by that.
        fs::rename(&aside, &place).with_context(failed)?;
        let above = place.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let synced = File::open(above).and_then(|above| above.sync_all());
        synced.with_context(|| format!("{} cannot be synced", above.display()))
    }
}

/// Where a folder is put together.
fn aside(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".uniting");
    name.into()
}
