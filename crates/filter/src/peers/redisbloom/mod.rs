//! Filters of RedisBloom, in the format of `BF.SCANDUMP` and `BF.LOADCHUNK`.
//!
//! ```text
//! chunks (iterator, data) -> Loader -> Filter -> contains, add -> Filter::chunks
//! ```
//!
//! A [`Filter`] gives the same answers as the server, and grows with the same layers. After the
//! same additions, its chunks have the same bytes as those of the server. Chunks come from files
//! and servers, so the loader does not trust them. The loader allocates memory only in sizes that
//! it has checked, or for bytes that have arrived.
//!
//! ```text
//! a = MurmurHash64A (item, 0xc6a4a7935bd1e995), b = MurmurHash64A (item, a)
//! bit i of a layer = (a + i b mod 2^64) mod its bits, i = 0 to its hashes - 1
//! ```
//!
//! An item is in the filter if any layer has all bits of the item. A new item is added to the
//! newest layer. Once that layer is full, another layer follows, with `growth` times the capacity
//! and half the error rate. These rules were tested with RedisBloom 2.8. A server with the setting
//! `bf-hash-seed` has other hashes, and its dumps are refused.

pub mod dump;
mod filter;
mod header;
pub(crate) mod kind;
mod layer;
pub(crate) mod local;
mod parameters;
mod rate;
#[cfg(test)]
mod tests;

pub use crate::peers::redisbloom::dump::Loader;
#[cfg(test)]
pub(crate) use crate::peers::redisbloom::filter::MAX_CHUNK;
pub use crate::peers::redisbloom::filter::{Chunk, DEFAULT_EXPANSION, Filter, Reservation};
pub use crate::peers::redisbloom::layer::Layer;
pub(crate) use crate::peers::redisbloom::layer::key_hash;
pub use crate::peers::redisbloom::rate::Rate;
pub(crate) use crate::peers::redisbloom::rate::forecast;

use crate::Full;

/// Name of RedisBloom's rule from keys to bit positions. Bits that were set by another rule have no
/// meaning here.
pub(crate) const POSITION_RULE: &str = "redisbloom/hex-digits/murmur64a-chained";

/// Factor by which the error rate changes from one layer to the next.
const TIGHTENING: f64 = 0.5;

/// Error of a chunk that is refused, with the place of the problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "chunk {chunk} of the RedisBloom filter, byte {offset}: {problem}; dump the filter again with \
     BF.SCANDUMP and pass on every chunk, in order"
)]
pub struct ChunkError {
    /// Number of the chunk; 0 is the header.
    pub(crate) chunk: u64,
    /// Offset in the chunk at which the problem begins.
    pub(crate) offset: u64,
    /// Kind of the problem, with its values.
    pub(crate) problem: FormatError,
}

/// Reason why a chunk is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum FormatError {
    /// The iterator of the chunk is not the expected one.
    #[error(
        "its iterator is {found} instead of {due}: chunks are missing, doubled or out of order"
    )]
    Iterator {
        /// Iterator of the chunk.
        found: i64,
        /// Iterator that the chunk must have.
        due: i64,
    },
    /// The header has an impossible length.
    #[error(
        "the header has {found} bytes; a header has 20, plus 53 for each layer, and 1 layer or more"
    )]
    HeaderLength {
        /// Bytes that the header has.
        found: usize,
    },
    /// The header comes from a server with its own hash seed, and so with other hashes.
    #[error(
        "16 bytes follow the layers: the server hashes with a bf-hash-seed of its own, and only \
         filters without one can be read"
    )]
    Seeded,
    /// A number in the header is impossible.
    #[error("the {field} is {found}; {allowed}")]
    Field {
        /// Name of the header's field.
        field: &'static str,
        /// Value of the header's field, as text.
        found: String,
        /// Allowed values, for people.
        allowed: &'static str,
    },
    /// The filter is larger than the caller allows.
    #[error("the layers take more than {limit} bytes, the limit that is set for them")]
    TooLarge {
        /// Maximum number of bytes that are allowed.
        limit: u64,
    },
    /// The chunk has no data.
    #[error("the chunk is empty")]
    Empty,
    /// The chunk exceeds the end of a layer, or of the filter.
    #[error("the chunk has {found} bytes, and its layer lacks only {left}")]
    TooLong {
        /// Bytes that the chunk has.
        found: usize,
        /// Bytes that are still missing.
        left: u64,
    },
    /// The filter lacks chunks.
    #[error("the chunk is missing: the filter lacks {left} bytes")]
    Missing {
        /// Bytes that are still missing.
        left: u64,
    },
    /// The system gave no memory.
    #[error("the system gave no memory for {bytes} more bytes of the filter")]
    Memory {
        /// Bytes that were requested.
        bytes: usize,
    },
}

impl ChunkError {
    /// Returns true if the system had too little memory.
    pub(crate) fn is_for_want_of_memory(&self) -> bool {
        matches!(self.problem, FormatError::Memory { .. })
    }
}

/// Reason why a filter cannot be reserved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReserveError {
    /// The error rate is not between 0 and 1.
    #[error("the error rate {0:e} of a RedisBloom filter does not lie between 0 and 1")]
    ErrorRate(f64),
    /// The capacity is 0 items.
    #[error("the capacity 0 of a RedisBloom filter holds no item; give at least 1")]
    Capacity,
    /// The layer takes more memory than is allowed, or than can be addressed.
    #[error("a RedisBloom layer for {capacity} items takes more than {limit} bytes, its limit")]
    TooLarge {
        /// Capacity of the layer in items.
        capacity: u64,
        /// Maximum number of bytes that are allowed.
        limit: u64,
    },
    /// The system gave no memory.
    #[error("the system did not give {bytes} bytes of memory for a RedisBloom layer")]
    Memory {
        /// Bytes that were requested.
        bytes: u64,
    },
}

/// Refuses items: the filter is full, and another layer is not possible.
impl From<ReserveError> for Full {
    fn from(error: ReserveError) -> Self {
        Self(format!("the RedisBloom filter is full and cannot grow: {error}"))
    }
}
