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
//! caller. Only [`disk`] names the file system. The files and their bytes are described beside
//! their encoders: [`header`], [`segment`] and [`record`] (the log), [`snapshot`], [`lease`].

mod disk;
mod error;
mod folder;
mod header;
mod history;
mod journal;
mod lease;
mod log;
mod look;
mod lookup;
mod rebase;
mod record;
mod recovery;
mod retention;
mod segment;
mod snapshot;

pub use error::{Damage, OpenError, Unrecoverable};
pub use folder::{Folder, Holder};
pub use header::{Difference, Header, Pins};
pub use journal::{Journal, LogHandle};
pub use log::{Log, Logged, Record, Volatile};
pub use look::{Look, SegmentLook, SnapshotLook, look};
pub use lookup::AtRest;
pub use rebase::Rebase;
pub use recovery::{Recovered, Restore, Target};
pub use retention::Retention;
pub use snapshot::{Finished, SnapshotWriter};
