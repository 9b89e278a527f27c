//! The filters of RedisBloom, as `BF.SCANDUMP` gives them and `BF.LOADCHUNK` takes them.
//!
//! ```text
//! chunks (iterator, data) -> Loader -> Filter -> contains, add -> Filter::chunks
//! ```
//!
//! A [`Filter`] is exact: it says of every item what the server says, grows by the layers that the
//! server would grow by, and its chunks are byte for byte the server's after the same adds. Chunks
//! come from files and servers, so nothing in them is trusted, and no memory is taken that has not
//! been checked first, or that more bytes have not arrived for.
//!
//! ```text
//! a = MurmurHash64A (item, 0xc6a4a7935bd1e995), b = MurmurHash64A (item, a)
//! bit i of a layer = (a + i b mod 2^64) mod its bits, i = 0 to its hashes - 1
//! ```
//!
//! An item is in the filter if any layer has all its bits. It is added to the newest layer, and
//! once that has as many items as its capacity, to a new one with `growth` times the capacity and
//! half the error rate. Tried with RedisBloom 2.8; a server with the setting `bf-hash-seed` has
//! other hashes, and its dumps are refused.

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

/// The name of the rule by which keys of RedisBloom's layout become bit positions. Bits kept under
/// one rule mean nothing under another.
pub(super) const POSITION_RULE: &str = "redisbloom/hex-digits/murmur64a-chained";

/// What a layer's error rate is multiplied by for the next.
const TIGHTENING: f64 = 0.5;
