//! What a crawl has seen, from and to where others have it: filters of RedisBloom in files with a
//! dump and on servers with the module, and the sets of scrapy-redis. Of a filter the whole is in
//! memory, and beyond it one chunk; of a set a page.

mod file;
mod server;
pub(crate) mod set;

use std::io;
use std::path::PathBuf;

use urlseen_core::filter::redisbloom::ChunkError;
use urlseen_core::filter::redisbloom::dump::DumpError;
use urlseen_core::redis::error::LinkError;

pub(crate) use file::{read, write};
pub(crate) use server::{dump, load};

/// Who is told how far it is: bytes done, and bytes in all.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Why a filter did not come over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file holds no whole dump.
    #[error("{}, {problem}", path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong, and how.
        problem: DumpError,
    },
    /// What is written to cannot be.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// Redis, or the way to it.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// The server lacks the module.
    #[error(
        "Redis at {address} does not know {command}: it has no RedisBloom. Load the module \
         (loadmodule in redis.conf; Redis 8 and Redis Stack have it), or check redis.url"
    )]
    NoModule {
        /// The server.
        address: String,
        /// What it does not know.
        command: &'static str,
    },
    /// There is nothing to dump.
    #[error("there is no key {key} at {address}; check redis.url and the database in it")]
    NoKey {
        /// The key.
        key: String,
        /// The server and the database.
        address: String,
    },
    /// The key holds something else.
    #[error("the key {key} holds a {found}, and {needed} was expected")]
    OtherType {
        /// The key.
        key: String,
        /// What it should hold.
        needed: &'static str,
        /// What it holds.
        found: String,
    },
    /// The key may hold anything.
    #[error(
        "the key {key} is there already (type {found}), and is left as it is; give another key, or \
         delete it first"
    )]
    KeyExists {
        /// The key.
        key: String,
        /// What it holds.
        found: String,
    },
    /// What the server dumped is no filter.
    #[error("the dump of {key}: {problem}")]
    Chunk {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: ChunkError,
    },
    /// Somebody added to the filter meanwhile.
    #[error(
        "the filter {key} was added to while it was dumped, so the dump is not of one moment; stop \
         those who add to it, and give the command again"
    )]
    Changed {
        /// The key.
        key: String,
    },
    /// It failed in the middle.
    #[error("{why}. {done} of {all} bytes of the filter had been loaded; {left}")]
    Half {
        /// What failed.
        why: LinkError,
        /// Bytes that the server had taken.
        done: u64,
        /// Bytes of the filter.
        all: u64,
        /// What is left of it on the server.
        left: PartialLoadError,
    },
    /// The server has something else now.
    #[error(
        "the server took the filter, and {key} is not what was loaded: somebody else writes to it; \
         it was left as it is"
    )]
    Differs {
        /// The key.
        key: String,
    },
}

/// What is left on a server of a filter that was not loaded to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PartialLoadError {
    /// Nothing.
    #[error("the key {0} was removed again")]
    Nothing(String),
    /// The key.
    #[error("the key {0} is half there and answers wrongly: delete it (DEL) before trying again")]
    Key(String),
    /// Nobody knows.
    #[error("whether the key {0} is half there is not known: if it is there, delete it (DEL)")]
    Unknown(String),
}
