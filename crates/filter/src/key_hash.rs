//! Hashes of keys: the hasher of fingerprints for a filter in memory, the shard of a key, and the
//! hash functions. Only this file names a hash crate.
//!
//! MurmurHash3 is by Austin Appleby, from SMHasher. Both variants take a 32-bit seed. Their results
//! do not depend on the byte order of the machine. `murmur64a` is an older hash by the same author.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU8;

use siphasher::sip::SipHasher13;
use urlseen_fingerprint::Fingerprint;

use super::two_choice::KeyBits;
use crate::Seed;

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
        let (h1, h2) = murmur3_x64_128(fingerprint.as_bytes(), seed.0);
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
    pub fn new(seed: Seed) -> Self {
        let rule =
            |it: &Self, key: &Fingerprint| KeyHash { kept: it.kept, ..KeyHash::of(it.seed, key) };
        Self { seed, rule, kept: None }
    }

    /// Creates a hasher with the rule of another project, which has no seed.
    pub(super) fn by(rule: fn(&Self, &Fingerprint) -> KeyHash) -> Self {
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

/// Number of shards of a filter: one for each leading byte of a seeded hash.
pub const SHARDS: usize = 256;

/// Name of the rule from fingerprints to shards. Every stored filter records the name. Bits that
/// were set by another rule have no meaning here, so a reader compares the names first.
pub(crate) const SHARD_RULE: &str = "murmur3-x64-128-top-byte";

/// Id of a shard. A shard is the part of a filter that holds all keys whose seeded hash has one
/// leading byte. Without the seed, links of one shard cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u8);

impl ShardId {
    /// Returns the shard of a key by [`SHARD_RULE`]. `hash` is the first word of the key's seeded
    /// MurmurHash3 x64-128.
    #[inline]
    fn of(hash: u64) -> Self {
        Self(hash.to_be_bytes()[0])
    }

    /// First shard, which has all keys of a filter with only one shard.
    pub const WHOLE: Self = Self(0);

    /// Iterates over all shards, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
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

/// Returns the fingerprint of any bytes, which is the same in each filter.
#[inline]
pub fn digest_of(bytes: &[u8]) -> Fingerprint {
    let (h1, h2) = murmur3_x64_128(bytes, 0);
    Fingerprint::Raw16(bytemuck::cast([h1.to_le_bytes(), h2.to_le_bytes()]))
}

/// Returns the two 64-bit words of MurmurHash3 x64-128 of `key`, in the order of Python's
/// `mmh3.hash64(key, seed)`.
pub(crate) fn murmur3_x64_128(key: &[u8], seed: u32) -> (u64, u64) {
    mur3::murmurhash3_x64_128(key, seed)
}

/// Returns MurmurHash3 x86-32 of `key`. Python's `mmh3.hash(key, seed)` returns the same bits as a
/// signed number.
pub fn murmur3_x86_32(key: &[u8], seed: u32) -> u32 {
    mur3::murmurhash3_x86_32(key, seed)
}

/// Returns SipHash-1-3 of the length of `text`, in 8 bytes, and `text`: the hash of a slice by
/// Rust's `Hash`. The key has 16 bytes.
pub(crate) fn sip_hash_1_3(key: &[u8], text: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key.try_into().expect("16 bytes"));
    hasher.write(&(text.len() as u64).to_le_bytes());
    hasher.write(text);
    hasher.finish()
}

/// Multiplier of all steps.
const M: u64 = 0xc6a4_a793_5bd1_e995;
/// Shift of all steps, in bits.
const R: u32 = 47;

/// Returns MurmurHash64A of `key`, read as little-endian words on every machine.
#[inline]
pub(crate) fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let (words, tail) = key.as_chunks();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        let word = shift_mixed(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    shift_mixed(shift_mixed(hash).wrapping_mul(M))
}

fn shift_mixed(word: u64) -> u64 {
    word ^ word >> R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_variants_agree_with_mmh3() {
        let table = include_str!("../../../tests/vectors/murmur3.tsv");
        let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 112);
        for row in rows {
            let cells: Vec<&str> = row.split('\t').collect();
            let [key, seed, small, first, second] = cells[..] else { panic!("five cells: {row}") };
            let key: Vec<u8> = (0..key.len() / 2)
                .map(|byte| u8::from_str_radix(&key[2 * byte..2 * byte + 2], 16).unwrap())
                .collect();
            let seed = seed.parse().unwrap();
            let word = |cell| u64::from_str_radix(cell, 16).unwrap();
            assert_eq!(u64::from(murmur3_x86_32(&key, seed)), word(small), "x86-32 of {row}");
            assert_eq!(murmur3_x64_128(&key, seed), (word(first), word(second)), "{row}");
        }
    }

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn another_implementation_agrees(
            key in prop::collection::vec(any::<u8>(), 0..100),
            seed in any::<u64>(),
        ) {
            prop_assert_eq!(murmur64a(&key, seed), murmur2::murmur64a(&key, seed));
        }
    }
}
