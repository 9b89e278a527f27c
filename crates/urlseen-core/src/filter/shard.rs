//! Ids of the shards of a filter, and the owners of the shards.

use crate::fingerprint::{Fingerprint, PartitionCount};

/// Number of shards of a filter: one for each leading byte.
pub const SHARDS: usize = 256;

/// Name of the rule from fingerprints to shards. Every stored filter records the name. Bits that
/// were set by another rule have no meaning here, so a reader compares the names first.
pub const SHARD_RULE: &str = "digest-leading-byte/text-murmur3-x64-128-top-byte";

/// Id of a shard. A shard is the part of a filter that holds all fingerprints with one leading
/// byte. All fingerprints of a partition begin with the same bits, so the filter of a partition
/// takes the eight bits that follow. Layouts compute the id from a fingerprint by [`SHARD_RULE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u8);

impl ShardId {
    /// Returns the shard of a fingerprint by [`SHARD_RULE`], in the filter of one of these
    /// partitions. The shard of a digest is its leading byte. The first byte of plain text is not
    /// evenly spread, because all URLs begin with `h`. So the shard of plain text is the top byte
    /// of `hash`, the first word of its seeded MurmurHash3 x64-128.
    #[inline]
    pub(super) fn of(fingerprint: &Fingerprint, partitions: PartitionCount, hash: u64) -> Self {
        match fingerprint {
            Fingerprint::Raw16(raw) => Self(partitions.next_byte(raw[0], raw[1])),
            Fingerprint::Raw20(raw) => Self(partitions.next_byte(raw[0], raw[1])),
            Fingerprint::Raw32(raw) => Self(partitions.next_byte(raw[0], raw[1])),
            Fingerprint::Text(_) => Self(hash.to_be_bytes()[0]),
        }
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

    /// Returns the owner of this shard among `owners` owners (1 to 256). The shards go to the
    /// owners in turn, so the owners' numbers of shards differ by at most one.
    pub fn owner(self, owners: usize) -> usize {
        self.index() % owners
    }
}

/// Writes the number of the shard as two hex digits.
impl std::fmt::Display for ShardId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}
