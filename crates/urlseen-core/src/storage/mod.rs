//! What is remembered of the filter beyond this process: the storage folder.
//!
//! ```text
//! Folder::open -> begin | check -> recover -> journal ------> append, sync, cut
//!                                         └-> snapshot_writer -> write per shard, finish
//!                                         └-> rebase ---------> write per shard, finish
//! look, AtRest: read only, beside whoever runs
//! ```
//!
//! Blocking, and without any knowledge of Redis: the head that a crawl stands at is told by the
//! caller. Only `disk` names the file system. The files and their bytes are described beside their
//! encoders: `header`, `segment` and `record` (the log), `snapshot`, `archive`, `lease`, `imports`,
//! `ages`.

mod ages;
mod archive;
mod cut;
pub mod descriptors;
mod difference;
mod disk;
mod error;
mod fields;
mod folder;
mod head;
mod header;
mod history;
mod hold;
mod holder;
mod imports;
mod journal;
mod lease;
mod log;
mod look;
mod lookup;
mod made;
mod moment;
pub mod named;
mod rebase;
mod rebuilt;
mod record;
mod recovery;
mod requests;
mod retention;
mod scan;
mod segment;
mod shards;
mod snapshot;
mod sync;
#[cfg(test)]
mod tests;
mod usage;

pub use archive::{Archive, Standing};
pub use difference::Difference;
#[cfg(test)]
pub(crate) use error::Damage;
pub use error::{OpenError, RecoveryError};
pub use folder::Folder;
pub use head::{Head, Position};
pub use header::{Header, Pins};
pub use imports::Checkpoint;
pub use journal::Journal;
pub use log::{Log, Record, Volatile};
pub use look::header as header_of;
pub use look::look;
pub use look::{Look, SegmentLook, SnapshotLook};
pub use lookup::{AtRest, Beside};
pub use made::Made;
pub use moment::Moment;
pub use named::{Named, named};
pub use rebase::Rebase;
pub use recovery::{Recovered, Restore, Target};
pub use requests::{Request, Requests};
pub use retention::Retention;
pub use shards::ShardReader;
pub use snapshot::{Finished, SnapshotWriter};
pub use sync::LogHandle;
pub use usage::Usage;
