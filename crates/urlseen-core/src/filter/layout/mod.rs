//! How a fingerprint becomes a shard and bit positions. A new layout is one file here and one
//! line in [`FilterKind`](super::choice::FilterKind).
//!
//! Beside this program's own there are those of other projects, whose bits lie in Redis strings:
//! [`BitStrings`] says where each key's are.

mod bit_strings;
#[cfg(test)]
mod bit_strings_tests;
pub(crate) mod block_cluster;
pub(crate) mod imooc;
pub mod native;
#[cfg(test)]
mod native_tests;
pub(crate) mod pyrebloom;
pub(crate) mod scrapy_redis_bloomfilter;

pub(crate) use bit_strings::SizeError;
pub use bit_strings::{BitPosition, BitStrings, PlacementError};
pub use block_cluster::BlockCluster;
pub use imooc::Imooc;
pub use pyrebloom::PyreBloom;
pub use scrapy_redis_bloomfilter::ScrapyRedisBloomFilter;
