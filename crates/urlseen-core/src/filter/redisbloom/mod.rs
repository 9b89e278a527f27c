//! The filters of RedisBloom, as `BF.SCANDUMP` gives them and `BF.LOADCHUNK` takes them.
//!
//! ```text
//! chunks (iterator, data) -> Loader -> Filter -> contains, add -> Filter::chunks
//! ```
//!
//! A [`Filter`] is exact: it gives the same answers as the server, and grows by the same layers.
//! After the same adds, its chunks are byte for byte the server's. Chunks come from files and
//! servers, so the loader trusts none of their content. It takes memory only for numbers that it
//! has checked, or for bytes that have arrived.
//!
//! ```text
//! a = MurmurHash64A (item, 0xc6a4a7935bd1e995), b = MurmurHash64A (item, a)
//! bit i of a layer = (a + i b mod 2^64) mod its bits, i = 0 to its hashes - 1
//! ```
//!
//! An item is in the filter if any layer has all its bits. It is added to the newest layer. Once
//! that layer is full, a new one follows, with `growth` times the capacity and half the error rate.
//! This was tried with RedisBloom 2.8. A server with the setting `bf-hash-seed` has other hashes,
//! and its dumps are refused.

pub mod dump;
mod error;
mod filter;
mod forecast;
mod header;
mod layer;
mod loader;
mod places;
mod rate;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use error::FormatError;
pub use error::ReserveError;
pub use error::{AddError, ChunkError};
#[cfg(test)]
pub(crate) use filter::MAX_CHUNK;
pub use filter::{Chunk, Filter, Growth};
pub use forecast::Forecast;
pub use layer::{Hashes, Layer};
pub use loader::Loader;
pub use places::LayerBits;
pub use rate::Rate;

/// Name of the rule by which keys of RedisBloom's layout become bit positions. Bits of one rule
/// have no meaning under another.
pub(super) const POSITION_RULE: &str = "redisbloom/hex-digits/murmur64a-chained";

/// Factor from a layer's error rate to that of the next one.
const TIGHTENING: f64 = 0.5;
