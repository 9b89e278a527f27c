//! Transfers of a crawl's fingerprints from and to other projects: filters of RedisBloom, in dump
//! files and on servers with the module, and the sets of scrapy-redis. A transfer has the whole
//! filter and one chunk in memory, or one page of a set.

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

/// Callback for progress: bytes done, and bytes in all.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Failed transfer of a filter or set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file does not hold a complete dump.
    #[error("{}, {problem}", path.display())]
    Dump { path: PathBuf, problem: DumpError },
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// Redis or the connection to it fails.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// The server lacks the module.
    #[error(
        "Redis at {address} does not know {command}: it has no RedisBloom. Load the module \
         (loadmodule in redis.conf; Redis 8 and Redis Stack have it), or check redis.url"
    )]
    NoModule { address: String, command: &'static str },
    /// The key to read does not exist.
    #[error("there is no key {key} at {address}; check redis.url and the database in it")]
    NoKey { key: String, address: String },
    /// The key has another type.
    #[error("the key {key} holds a {found}, and {needed} was expected")]
    OtherType { key: String, needed: &'static str, found: String },
    /// The key to write exists.
    #[error(
        "the key {key} is there already (type {found}), and is left as it is; give another key, or \
         delete it first"
    )]
    KeyExists { key: String, found: String },
    /// A chunk of the server's dump is invalid.
    #[error("the dump of {key}: {problem}")]
    Chunk { key: String, problem: ChunkError },
    /// Another client added to the filter meanwhile.
    #[error(
        "the filter {key} was added to while it was dumped, so the dump is not of one moment; stop \
         the programs that add to it, and give the command again"
    )]
    Changed { key: String },
    /// The load failed after its first chunk.
    #[error("{why}. {done} of {all} bytes of the filter had been loaded; {left}")]
    Half { why: LinkError, done: u64, all: u64, left: PartialLoadError },
    /// The server holds other bits than those loaded.
    #[error(
        "the server took the filter, and {key} is not what was loaded: another client writes to \
         it; it was left as it is"
    )]
    Differs { key: String },
}

/// Remains on the server of a filter that was not loaded completely.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PartialLoadError {
    /// Nothing remains of the key.
    #[error("the key {0} was removed again")]
    Nothing(String),
    /// The key could not be removed.
    #[error("the key {0} is half there and answers wrongly: delete it (DEL) before trying again")]
    Key(String),
    /// The server's answer was lost.
    #[error("the key {0} may be half there: if it exists, delete it (DEL) before trying again")]
    Unknown(String),
}
