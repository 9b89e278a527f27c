//! How a fingerprint becomes a shard and bit positions. A new layout is one file here and one line
//! in [`LocalKind`].
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

use std::str::FromStr;

pub(crate) use bit_strings::SizeError;
pub use bit_strings::{BitPosition, BitStrings, PlacementError};
pub use block_cluster::BlockCluster;
pub use imooc::Imooc;
pub use pyrebloom::PyreBloom;
pub use scrapy_redis_bloomfilter::ScrapyRedisBloomFilter;

/// The layouts by their names in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocalKind {
    /// This program's own: bits confined to a few cache lines of one of 256 shards.
    Native,
    /// RedisBloom's: layers that grow, in one piece.
    RedisBloom,
}

/// A name that no layout has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no filter layout is called {0:?}; there is {known}", known = LocalKind::NAMES.join(", "))]
pub struct UnknownKindError(String);

impl LocalKind {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Native, Self::RedisBloom];
    /// Their names, in the same order.
    pub const NAMES: [&str; Self::ALL.len()] = ["native", "redisbloom"];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for LocalKind {
    type Err = UnknownKindError;

    fn from_str(name: &str) -> Result<Self, UnknownKindError> {
        let found = Self::ALL.into_iter().find(|layout| layout.name() == name);
        found.ok_or_else(|| UnknownKindError(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_known_by_their_names() {
        for layout in LocalKind::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        let refused = "bloom".parse::<LocalKind>().unwrap_err();
        assert_eq!(
            refused.to_string(),
            r#"no filter layout is called "bloom"; there is native, redisbloom"#
        );
    }
}
