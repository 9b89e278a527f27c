//! Hasher of fingerprints for a filter in memory.

use std::num::NonZeroU8;

use crate::filter::layout::native::{KeyHash, key_hash};
use crate::filter::two_choice::KeyBits;
use crate::filter::{Seed, redisbloom};
use crate::fingerprint::Fingerprint;

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
            |it: &Self, key: &Fingerprint| KeyHash { kept: it.kept, ..key_hash(it.seed, key) };
        Self { seed, rule, kept: None }
    }

    /// Creates a hasher with the rule of RedisBloom, which has no seed. RedisBloom's clients send
    /// the text of a fingerprint.
    pub(in crate::filter) fn of_redisbloom() -> Self {
        let rule = |_: &Self, key: &Fingerprint| redisbloom::key_hash(key.text(&mut [0; 64]));
        Self { rule, ..Self::new(Seed::new(0)) }
    }

    /// Returns a hasher for a filter that tells keys apart by these bits alone.
    pub(in crate::filter) fn with_bits(self, bits: KeyBits) -> Self {
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
