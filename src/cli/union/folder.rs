//! New storage folder, which appears once all of it is there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use urlseen_core::filter::FilterSpec;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{Folder, Head, Rebase, StorageSpec};
use urlseen_engine::config::Config;

/// Storage folder that is put together beside its place.
pub(super) struct NewFolder {
    folder: Folder,
    aside: PathBuf,
    place: PathBuf,
}

impl NewFolder {
    /// Begins a folder with a fresh id, for the crawl of `config`.
    pub(super) fn begin(place: &Path, config: &Config, filter: FilterSpec) -> anyhow::Result<Self> {
        let aside = aside(place);
        // A killed union has left it; one that is under way has it locked.
        drop(Folder::open(&aside)?);
        match fs::remove_dir_all(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("{} cannot be removed", aside.display()));
            }
            _ => {}
        }
        let mut folder = Folder::open(&aside)?;
        let spec = StorageSpec { crawl: config.crawl.name.clone(), filter };
        folder.begin(&spec, RandomId::random().get(), Head::START)?;
        Ok(Self { folder, aside, place: place.to_owned() })
    }

    /// Begins to write the filter of the folder.
    pub(super) fn rebase(&mut self) -> io::Result<Rebase<'_>> {
        self.folder.rebase(Head::START)
    }

    /// Puts the folder in its place, which must be free.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { folder, aside, place } = self;
        drop(folder);
        let failed = || format!("{} cannot be renamed to {}", aside.display(), place.display());
        // A rename replaces neither a file nor a folder that has files.
        fs::rename(&aside, &place).with_context(failed)?;
        let above = place.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let synced = File::open(above).and_then(|above| above.sync_all());
        synced.with_context(|| format!("{} cannot be synced", above.display()))
    }
}

/// Returns the path at which a folder is put together.
fn aside(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".uniting");
    name.into()
}
