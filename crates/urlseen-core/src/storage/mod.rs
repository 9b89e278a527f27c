//! What is remembered of the filter beyond this process: the state folder.
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

pub use archive::Archive;
pub use archive::Standing;
pub use difference::Difference;
pub(crate) use error::Damage;
pub use error::OpenError;
pub use error::Unrecoverable;
pub use folder::Folder;
pub use header::Header;
pub use header::Pins;
pub(crate) use holder::Holder;
pub use imports::Mark;
pub use journal::Journal;
pub use log::Log;
pub use log::Record;
pub use log::Volatile;
pub use look::Look;
pub use look::SegmentLook;
pub use look::SnapshotLook;
pub use look::header as header_of;
pub use look::look;
pub use lookup::AtRest;
pub use lookup::Beside;
pub use made::Made;
pub use moment::Moment;
pub use named::Named;
pub use named::named;
pub use rebase::Rebase;
pub(crate) use recovery::Cut;
pub use recovery::Recovered;
pub use recovery::Restore;
pub use recovery::Target;
pub use requests::Request;
pub use requests::Requests;
pub use retention::Retention;
pub use shards::ShardReader;
pub use snapshot::Finished;
pub use snapshot::SnapshotWriter;
pub use sync::LogHandle;
pub use usage::Usage;
