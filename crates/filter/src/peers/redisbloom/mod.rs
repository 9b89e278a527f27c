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
mod parameters;
mod rate;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;

pub use dump::Loader;
pub(crate) use filter::LayersGauge;
pub use filter::{Chunk, Filter};
pub use parameters::Reservation;

/// Name of RedisBloom's rule from keys to bit positions. Bits that were set by another rule have no
/// meaning here.
const POSITION_RULE: &str = "redisbloom/hex-digits/murmur64a-chained";

/// Factor by which the error rate changes from one layer to the next.
const TIGHTENING: f64 = 0.5;

/// Makes the error of a chunk that is refused, with the place of the problem: the number of the
/// chunk, which is 0 for the header, and the offset in the chunk.
fn refused(kind: io::ErrorKind, chunk: u64, offset: u64, problem: impl Display) -> io::Error {
    let error = format!(
        "chunk {chunk} of the RedisBloom filter, byte {offset}: {problem}; dump the filter again \
         with BF.SCANDUMP and pass on every chunk, in order"
    );
    io::Error::new(kind, error)
}
