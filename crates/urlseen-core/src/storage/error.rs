//! What can be wrong with a storage folder.

use std::io;
use std::path::{Path, PathBuf};

use super::damage::Damage;
use super::lock::Holder;
use crate::storage::head::Head;

/// A storage folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system failed.
    #[error(
        "the storage folder {dir} cannot be opened: {reason}. See to the disk and to the \
         permissions of this process there, or name another folder", dir = dir.display()
    )]
    Io {
        /// The folder.
        dir: PathBuf,
        /// What failed.
        reason: io::Error,
    },
    /// The folder does not exist.
    #[error(
        "there is no storage folder {dir}, so it holds no filter. Name the folder of a crawl that \
         has begun", dir = dir.display()
    )]
    Missing {
        /// The folder.
        dir: PathBuf,
    },
    /// Somebody else has it open: to write, or to read it at rest.
    #[error(
        "the storage folder {dir} is in use{by}; stop that process, or give this one another \
         storage.dir", dir = dir.display(), by = by(holder.as_ref())
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// Who writes to it, as far as that is said; `None` if it is only being read.
        holder: Option<Holder>,
    },
    /// Its header cannot be trusted.
    #[error(
        "the header of the storage folder is damaged: {0}; bring the folder back from a copy, or \
         remove it and begin with an empty filter: urlseen storage reset"
    )]
    Header(Damage),
    /// There are a log and snapshots, but no header to say of what.
    #[error(
        "the storage folder {dir} has lost its header (its file `header` is missing, {file} is \
         there); bring the file back from a copy, or remove the folder and begin with an empty \
         filter: urlseen storage reset", dir = dir.display()
    )]
    HeaderMissing {
        /// The folder.
        dir: PathBuf,
        /// One of the files that only a folder with a header has.
        file: String,
    },
    /// It was written by a version that this one does not understand.
    #[error(
        "the storage folder {dir} has format {found}, written by another version of urlseen; this \
         one reads the format {known}. Go on with the version that wrote it. Or begin with an \
         empty filter: remove the folder or set another storage.dir, then urlseen storage reset",
        dir = dir.display(), known = super::header::FORMAT
    )]
    Format {
        /// The folder.
        dir: PathBuf,
        /// Its format.
        found: u32,
    },
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by {holder}"))
}

/// Why the filter cannot be brought to where Redis stands.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The folder's log ends, or is damaged, before the target.
    #[error(
        "Redis stands at {target}, and the storage folder goes no further than {end}: it lacks the \
         fingerprints of {missing} batches{why}. urlseen storage show tells more; urlseen storage \
         adopt continues without them: their URLs are emitted again", why = because(damage.as_ref())
    )]
    Behind {
        /// Where the filter was to be brought.
        target: Head,
        /// The last batch that the log has.
        end: Head,
        /// How many batches' fingerprints are missing.
        missing: u64,
        /// Where the log cannot be read any further, if it does not simply end.
        damage: Option<Damage>,
        /// The best state at or below the target that could be loaded.
        best: Option<Head>,
    },
    /// The target is older than all that the folder can go back to.
    #[error(
        "Redis stands at {target}, and the storage folder goes no further back than {oldest}{why}. \
         urlseen storage show tells more; urlseen storage adopt or reset goes on from here",
        why = because(damage.as_ref())
    )]
    Beyond {
        /// Where the filter was to be brought.
        target: Head,
        /// The oldest state that could be loaded.
        oldest: Head,
        /// What made older ones unusable, if anything did.
        damage: Option<Damage>,
        /// The best state at or below the target that could be loaded.
        best: Option<Head>,
    },
    /// Folder and Redis agree on the number of a batch and not on its id.
    #[error(
        "Redis stands at {target}, and the storage folder knows {ours} instead: these are two \
         histories. Is this another crawl's folder, or an old copy of it? urlseen storage show \
         tells more; urlseen storage adopt or reset goes on from here"
    )]
    OtherHistory {
        /// Where the filter was to be brought.
        target: Head,
        /// The batch of that number that the folder knows.
        ours: Head,
        /// The best state at or below the target that could be loaded.
        best: Option<Head>,
    },
    /// No snapshot can be read.
    #[error(
        "the storage folder has no snapshot that can be loaded{why}. Bring it back from a copy, or \
         continue with an empty filter: urlseen storage reset", why = because(damage.as_ref())
    )]
    NoSnapshot {
        /// What is wrong with the newest one, if there is one.
        damage: Option<Damage>,
    },
    /// A record of a kind that this version does not know.
    #[error(
        "the log has a record of the unknown kind {kind} ({file} at byte {offset}): a later \
         version wrote it; run that one"
    )]
    UnknownKind {
        /// The file's name in the folder.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// Its kind.
        kind: u8,
    },
    /// The folder was never begun.
    #[error("the storage folder is new: there is nothing to recover")]
    Fresh,
    /// The file system failed.
    #[error("the storage folder cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl OpenError {
    /// The error of a folder that cannot be read, for this reason.
    pub(super) fn unreadable(dir: &Path, reason: io::Error) -> Self {
        let dir = dir.to_owned();
        match reason.kind() {
            io::ErrorKind::NotFound => Self::Missing { dir },
            _ => Self::Io { dir, reason },
        }
    }
}

impl RecoveryError {
    /// The best state at or below the target that could be loaded, where one is known.
    pub fn best(&self) -> Option<Head> {
        match self {
            Self::Behind { best, .. }
            | Self::Beyond { best, .. }
            | Self::OtherHistory { best, .. } => *best,
            _ => None,
        }
    }
}

fn because(damage: Option<&Damage>) -> String {
    damage.map_or_else(String::new, |damage| format!(" ({damage})"))
}
