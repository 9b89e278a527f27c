//! Which shard holds a fingerprint, and who owns the shard.

use crate::fingerprint::Fingerprint;

/// How many shards a filter has: one for each leading byte.
pub const SHARDS: usize = 256;

/// The name of the rule that [`ShardId`]s are made by. Bits kept under one rule mean nothing under
/// another, so whatever keeps a filter keeps this beside it and compares.
pub const SHARD_RULE: &str = "digest-leading-byte/text-murmur3-x64-128-top-byte";

/// The part of the filter that holds all fingerprints with one leading byte. Only a layout makes
/// one, so none can name a shard by another rule than [`SHARD_RULE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u8);

impl ShardId {
    /// [`SHARD_RULE`]: a digest's leading byte. Plain text has no evenly spread byte of its own
    /// (URLs all begin with `h`), so its shard is the top byte of `hash`, the first word of its
    /// seeded MurmurHash3 x64-128.
    pub(super) fn of(fingerprint: &Fingerprint, hash: u64) -> Self {
        match fingerprint {
            Fingerprint::Raw16(raw) => Self(raw[0]),
            Fingerprint::Raw20(raw) => Self(raw[0]),
            Fingerprint::Raw32(raw) => Self(raw[0]),
            Fingerprint::Text(_) => Self(hash.to_be_bytes()[0]),
        }
    }

    /// The first shard: that of all keys of a filter that is one whole.
    pub const WHOLE: Self = Self(0);

    /// All shards, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// The shard of that number, as something kept has it.
    #[cfg(feature = "storage")]
    pub(crate) fn kept(index: u8) -> Self {
        Self(index)
    }

    /// The shard's number, to index what is kept per shard.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The shard's share of so many; those of all shards add up to them.
    pub(super) fn share(self, of: u64) -> u64 {
        let upto = |shards: usize| u128::from(of) * shards as u128 / SHARDS as u128;
        // No more than `of`.
        #[allow(clippy::cast_possible_truncation)]
        let share = (upto(self.index() + 1) - upto(self.index())) as u64;
        share
    }

    /// Which of `owners` owners (1 to 256) this shard belongs to: they take turns, so that no two
    /// owners' shares differ by more than one shard.
    pub fn owner(self, owners: usize) -> usize {
        self.index() % owners
    }
}

/// The leading byte as two hex digits.
impl std::fmt::Display for ShardId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}
