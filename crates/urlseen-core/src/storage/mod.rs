//! The storage folder: it keeps the filter when the process ends.
//!
//! ```text
//! open      folder                   by the one process that holds the lock, to write
//!           reader -> shards         at rest, or while that process writes, to read
//!           inspect                  its content, for people
//!
//! keep      filter_storage -> live   a filter at work: its folder, log and snapshots in one
//!
//! write     journal -> sync          every batch, appended and on the disk
//!           snapshot_writer          the whole filter, while the log grows -> prune -> archive
//!           rebase                   the whole filter, in place of everything else
//! recover   recovery -> scan -> cut  a snapshot and the log after it; the rest is dropped
//!           restore                  the recovered content, given to the filter
//!
//! log       history: all files; segment: one file; record: one record
//! filter    snapshot/                sections by shard
//!           shards                   shard by shard, for readers
//! archive   archive/                 fingerprints that pruning would lose
//! header    header, spec, difference: the spec of the filter, and the wanted one
//! notes     ages, imports, lease -> note: small files; lock
//!
//! below     head: last batch of a history; encoding: numbers and CRCs; damage, error
//!           dir -> requests -> disk -> descriptors; clock
//! ```
//!
//! A file names only files that are below it; `filter_storage` is the highest. All calls block.
//! Nothing here knows Redis: the caller tells the crawl's head. Only `disk` names the file system.
//! Each file's format is described at its encoder.

mod ages;
mod archive;
mod clock;
mod cut;
mod damage;
pub mod descriptors;
mod difference;
mod dir;
mod disk;
mod encoding;
mod error;
mod filter_storage;
mod folder;
mod head;
mod header;
mod history;
mod imports;
mod inspect;
mod journal;
mod lease;
mod live;
mod lock;
mod note;
mod prune;
mod reader;
mod rebase;
mod record;
mod recovery;
mod requests;
mod restore;
mod scan;
mod segment;
mod shards;
mod snapshot;
mod snapshot_writer;
mod sync;
#[cfg(test)]
mod tests;

pub use archive::{Archive, Standing};
pub use clock::Moment;
#[cfg(test)]
pub(crate) use damage::Damage;
pub use difference::Difference;
pub use error::{OpenError, RecoveryError};
pub use filter_storage::{FilterStorage, Footprint, StoragePolicy};
pub use folder::{Folder, Usage};
pub use head::{Head, Position};
pub use header::{Header, StorageSpec};
pub use imports::Checkpoint;
pub use inspect::header as header_of;
pub use inspect::{Look, Named, SegmentLook, SnapshotLook, look, named};
pub use journal::{Group, Journal, Record};
pub use live::{Copied, LiveFilter};
pub use prune::Retention;
pub use reader::{AtRest, Beside};
pub use rebase::Rebase;
pub use recovery::Recovered;
pub use requests::{Request, Requests};
pub use restore::{Restore, Section};
pub use scan::Target;
pub use shards::ShardReader;
pub use snapshot_writer::{Finished, SnapshotWriter};
pub use sync::LogHandle;
