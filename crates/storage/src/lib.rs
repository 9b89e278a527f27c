//! Storage folder: files that keep the filter after the process has ended.
//!
//! ```text
//! open      folder                   to write, by the process that holds the lock
//!           reader                   to read, also while another process writes
//!           inspect                  to list the content, for people
//!
//! keep      filter_storage           folder, log and snapshots of a filter in use
//!
//! write     journal -> sync          appends and syncs every batch
//!           snapshot_writer          writes the whole filter, then -> prune; or replaces all
//!                                    files with one snapshot
//! recover   recovery -> cut          finds a snapshot and the log after it; cuts off the rest
//!           restore                  interface of the filter, for recovery and snapshots
//!
//! log       history: all files; segment: one file; record: one record
//! filter    snapshot                 one file, by shard
//! archive   prune -> archive         files of the log that pruning would lose; their export
//! header    header, difference       spec of the filter, and comparison with a wanted spec
//! notes     header                   runs, checkpoints of imports, times
//! time      clock                    time since boot, and time of the expiry
//! lock      lock                     keeps a second writing process out
//!
//! below     head: last batch of a history; encoding: numbers and CRCs; error
//!           disk -> requests
//! ```
//!
//! A module names only modules that are below it; `filter_storage` is the highest. All calls block.
//! No module knows Redis: the caller gives the head of the crawl. Only `disk` names the file
//! system. The documentation of each encoder describes its file format.
//!
//! The engine (`urlseen-engine`) and the library `urlseen` use this crate. The API can change at
//! any time.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod archive;
mod clock;
mod cut;
mod difference;
mod disk;
mod encoding;
mod error;
mod filter_storage;
mod folder;
mod head;
mod header;
mod history;
mod inspect;
mod journal;
mod lock;
mod prune;
mod reader;
mod record;
mod recovery;
mod requests;
mod restore;
mod segment;
mod snapshot;
mod snapshot_writer;
mod sync;
#[cfg(any(test, feature = "simulation"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use archive::Archive;
pub use clock::{Moment, TimesOfDay, Timing};
pub use difference::Difference;
pub use error::{Damage, Lost, OpenError, RecoveryError};
pub use filter_storage::{ArchiveSize, FilterStorage, Footprint, Reach, StoragePolicy};
pub use folder::Folder;
pub use head::{Head, Logged, Position};
pub use header::{Checkpoint, Header, Notes, StorageSpec};
pub use history::Target;
pub use inspect::header as header_of;
pub use inspect::timing as timing_of;
pub use inspect::{Look, SegmentLook, look, named};
pub use journal::{Journal, Record, WriteGroup};
pub use prune::{ArchiveState, Retention};
pub use reader::{AtRest, Beside, Tombstones};
pub use record::{Change, RecordKind};
pub use recovery::Recovered;
pub use requests::{FolderRequest, Requests};
pub use restore::{Copied, LiveFilter, Restore, Section};
pub use snapshot::Snapshot;
pub use snapshot_writer::{Finished, Rebase, Sections, SnapshotWriter};
