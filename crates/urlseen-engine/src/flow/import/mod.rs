//! Importing: the fingerprints of a crawl that used something else, as a feed of raw digests.
//!
//! Digests go raw from where they were read: only lines and members of sets were ever text. Each
//! page has the cursor behind it, so the next import of the same goes on there.

mod cut;
mod files;
mod frames;
mod lines;
mod set;

use std::fmt;
use std::path::PathBuf;

use super::feed::{Feed, FeedError};
use urlseen_core::redis::RedisAddress;
use urlseen_core::storage::Checkpoint;

/// Origin of the fingerprints of an import.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Files, plain or compressed; standard input where there are none or where one is `-`.
    Files {
        /// Names of the files, in their order.
        files: Vec<PathBuf>,
        /// Format of all these files.
        format: Format,
    },
    /// Set in Redis whose members are hex digits.
    Set {
        /// Address of the server.
        address: RedisAddress,
        /// Name of the set in Redis.
        key: String,
    },
}

/// Format of a file of fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One of the others, as its first bytes tell.
    Auto,
    /// Lines of 32, 40 or 64 hex digits, as older versions of Scrapy write `requests.seen`.
    Hex,
    /// `requests.seen` as Scrapy 2.19 writes it.
    RequestsSeen,
}

impl Format {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Hex, Self::RequestsSeen];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Hex => "hex",
            Self::RequestsSeen => "requests-seen",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Origin {
    /// Opens the feed of its digests, from where an earlier import ended by its checkpoint.
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
