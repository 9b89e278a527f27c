//! Ids of the shards of a filter.

/// Number of shards of a filter: one for each leading byte of a seeded hash.
pub const SHARDS: usize = 256;

/// Name of the rule from fingerprints to shards. Every stored filter records the name. Bits that
/// were set by another rule have no meaning here, so a reader compares the names first.
pub const SHARD_RULE: &str = "murmur3-x64-128-top-byte";

/// Id of a shard. A shard is the part of a filter that holds all keys whose seeded hash has one
/// leading byte. Without the seed, links of one shard cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u8);

impl ShardId {
    /// Returns the shard of a key by [`SHARD_RULE`]. `hash` is the first word of the key's seeded
    /// MurmurHash3 x64-128.
    #[inline]
    pub(super) fn of(hash: u64) -> Self {
        Self(hash.to_be_bytes()[0])
    }

    /// First shard, which has all keys of a filter with only one shard.
    pub const WHOLE: Self = Self(0);

    /// Iterates over all shards, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// Returns the shard with this number in a file.
    #[cfg(feature = "storage")]
    pub(crate) fn kept(index: u8) -> Self {
        Self(index)
    }

    /// Returns the shard's number in a file.
    #[cfg(feature = "storage")]
    pub(crate) fn byte(self) -> u8 {
        self.0
    }

    /// Returns the shard's number, 0 to 255.
    pub fn number(self) -> u32 {
        self.0.into()
    }

    /// Returns the shard's number, as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the shard's share of a number. The shares of all shards add up to the number.
    pub(super) fn share(self, of: u64) -> u64 {
        let upto = |shards: usize| u128::from(of) * shards as u128 / SHARDS as u128;
        u64::try_from(upto(self.index() + 1) - upto(self.index())).expect("at most `of`")
    }
}

/// Writes the number of the shard as two hex digits.
impl std::fmt::Display for ShardId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}
