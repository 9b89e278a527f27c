//! Hashes of keys, and the hasher of fingerprints for a filter in memory.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU8;

use super::hash::murmur3_x64_128;
use super::two_choice::KeyBits;
use super::{Seed, ShardId, redisbloom};
use crate::fingerprint::Fingerprint;

/// Hash of a key: its shard, and two words from which its bit positions are computed. A key hash
/// depends only on the fingerprint and the seed, so it stays valid for another geometry.
///
/// Key hashes with the same shard and the same id are equal.
#[derive(Debug, Clone, Copy)]
pub struct KeyHash {
    pub(super) h1: u64,
    pub(super) h2: u64,
    pub(super) shard: ShardId,
    /// Number of the highest bits of `h2` by which the filter tells keys apart; `None` if it uses
    /// both words.
    pub(super) kept: Option<NonZeroU8>,
}

impl KeyHash {
    /// Computes the key hash of a fingerprint under a seed, by the rule of urlseen's own kinds.
    #[inline]
    pub(super) fn of(seed: Seed, fingerprint: &Fingerprint) -> Self {
        let (h1, h2) = murmur3_x64_128(fingerprint.as_bytes(), seed.get());
        Self { h1, h2, shard: ShardId::of(h1), kept: None }
    }

    /// Returns the key hash with this shard and this id. The id is a result of [`KeyHash::id`].
    pub fn named(shard: ShardId, id: u128) -> Self {
        // The upper half, and the lower.
        #[allow(clippy::cast_possible_truncation)]
        let (h1, h2) = ((id >> u64::BITS) as u64, id as u64);
        Self { h1, h2, shard, kept: None }
    }

    /// Returns the shard of the key.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Returns the id of the key in exact sets: both words as one number. Among 1e12 keys, two
    /// have the same id with a chance of 1.5e-15. If the filter keeps only some bits of a key, all
    /// keys with these bits have the same id.
    pub fn id(&self) -> u128 {
        let Self { h1, h2, shard, kept } = *self;
        let (h1, h2) = kept.map_or((h1, h2), |bits| (shard.number().into(), repeated(h2, bits)));
        u128::from(h1) << u64::BITS | u128::from(h2)
    }
}

/// Returns a word that has the highest bits of `word` again and again. Sets of ids use the lowest
/// bits, too.
fn repeated(word: u64, bits: NonZeroU8) -> u64 {
    let mut bits = u32::from(bits.get());
    let mut repeated = word & !u64::MAX.checked_shr(bits).unwrap_or(0);
    while bits < u64::BITS {
        repeated |= repeated >> bits;
        bits *= 2;
    }
    repeated
}

impl PartialEq for KeyHash {
    fn eq(&self, other: &Self) -> bool {
        (self.shard, self.id()) == (other.shard, other.id())
    }
}

impl Eq for KeyHash {}

impl Hash for KeyHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.shard, self.id()).hash(state);
    }
}

/// Hasher that computes the key hash of a fingerprint by the rule of a kind.
#[derive(Debug, Clone, Copy)]
pub struct KeyHasher {
    seed: Seed,
    rule: fn(&Self, &Fingerprint) -> KeyHash,
    /// See [`KeyHash::kept`].
    kept: Option<NonZeroU8>,
}

impl KeyHasher {
    /// Creates a hasher with the rule of urlseen's own kinds.
    pub(crate) fn new(seed: Seed) -> Self {
        let rule =
            |it: &Self, key: &Fingerprint| KeyHash { kept: it.kept, ..KeyHash::of(it.seed, key) };
        Self { seed, rule, kept: None }
    }

    /// Creates a hasher with the rule of RedisBloom, which has no seed. RedisBloom's clients send
    /// the text of a fingerprint.
    pub(super) fn of_redisbloom() -> Self {
        let rule = |_: &Self, key: &Fingerprint| redisbloom::key_hash(key.text(&mut [0; 64]));
        Self { rule, ..Self::new(Seed::new(0)) }
    }

    /// Returns a hasher for a filter that tells keys apart by these bits alone.
    pub(super) fn with_bits(self, bits: KeyBits) -> Self {
        Self { kept: Some(bits.0), ..self }
    }

    /// Returns a key hash of the same key for another filter. That filter has the same seed, and
    /// tells keys apart by all of their bits.
    #[must_use]
    pub fn narrow(&self, key_hash: KeyHash) -> KeyHash {
        KeyHash { kept: self.kept, ..key_hash }
    }

    /// Computes the key hash of a fingerprint.
    #[inline]
    pub fn key_hash(&self, fingerprint: &Fingerprint) -> KeyHash {
        (self.rule)(self, fingerprint)
    }
}
