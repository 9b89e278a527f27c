//! Import of fingerprints from a crawl by another program. The import is a feed of raw digests.
//!
//! The digests stay raw bytes on their way to the filter. Each page contains the cursor that marks
//! its end, so that the next import of the same input can continue there.
//!
//! About once a second, the storage thread syncs the log, and then writes the cursors of all
//! sources to the file `notes`. Path, size and modification time identify a file. The server's
//! `run_id` identifies a set, because the cursor of a set is invalid for another server
//! process. Each checkpoint has the id of the filter, so those from before a reset are ignored.
//! So are unreadable ones, because a second import does no harm.

mod cut;
mod files;
mod frames;
mod lines;
mod set;

use std::path::PathBuf;

use super::feed::{Feed, FeedError};
pub use urlseen_core::filter::choice::ImportFormat;
use urlseen_core::redis::RedisAddress;
use urlseen_core::storage::Checkpoint;

/// Origin of the fingerprints of an import.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Files, plain or compressed. Standard input if there are no files, and in place of a file
    /// named `-`.
    Files {
        /// Names of the files, in their order.
        files: Vec<PathBuf>,
        /// Format of all these files.
        format: ImportFormat,
    },
    /// Set in Redis. Its members are fingerprints as hex digits.
    Set {
        /// Address of the server.
        address: Box<RedisAddress>,
        /// Name of the set in Redis.
        key: String,
    },
}

impl Origin {
    /// Opens the feed of the digests. If a checkpoint shows that an earlier import has read a part
    /// of the input, the feed begins after that part.
    ///
    /// # Errors
    /// Redis does not have the set, or does not answer.
    pub fn open(self, checkpoints: Vec<Checkpoint>) -> Result<Feed, FeedError> {
        match self {
            Self::Files { files, format } => Ok(files::feed(files, format, checkpoints)),
            Self::Set { address, key } => set::feed(&address, key, &checkpoints),
        }
    }
}
