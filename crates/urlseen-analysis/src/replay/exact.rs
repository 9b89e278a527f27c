//! The exact set that a replay is judged by.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use urlseen_core::filter::native::KeyHash;

/// Parts of the set: each grows by itself, so little is copied, and held twice, at once.
const PARTS: usize = 256;

/// What a slot takes: a key and a byte that says what is in it.
const SLOT: u64 = 17;

/// Which fingerprints there were, by 128 bits of a seeded hash: that any two of 10^12 share those
/// has a chance of 1.5e-15, and the hash's seed is drawn, so nobody makes two that do. Where that
/// happened, one wrong drop would be taken for a right one.
#[derive(Debug)]
pub struct Exact {
    parts: Vec<HashSet<u128, BuildHasherDefault<Hashed>>>,
}

impl Exact {
    /// An empty set.
    pub(super) fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| HashSet::default()).collect() }
    }

    /// Whether the key was not there yet; it is now.
    #[inline]
    pub(super) fn insert(&mut self, key_hash: KeyHash) -> bool {
        let id = key_hash.id();
        // The lower half is the hash in each part.
        let part = (id >> (u128::BITS - PARTS.ilog2())) as usize;
        self.parts[part].insert(id)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        // Seven of eight slots are used before a part grows.
        self.parts.iter().map(|part| part.capacity() as u64 * 8 / 7 * SLOT).sum()
    }

    /// What so many keys take at most: half of the slots may be empty.
    pub(super) fn bytes_of(keys: u64) -> u64 {
        keys.saturating_mul(2 * SLOT * 8 / 7)
    }
}

/// A hasher for what is a hash already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 128-bit hashes are hashed");
    }

    #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_core::filter::native::Native;
    use urlseen_core::filter::{Blocks, Geometry, Seed};
    use urlseen_core::fingerprint::Fingerprint;

    #[test]
    fn each_is_new_once() {
        let geometry = Geometry::new(Blocks::One, 1, 1).unwrap();
        let native = Native::new(Seed::new(5), geometry);
        let mut exact = Exact::new();
        let key = |number: u32| native.key_hash(&Fingerprint::from_text(&number.to_be_bytes()));
        assert!((0..10_000).all(|number| exact.insert(key(number))));
        assert!((0..10_000).all(|number| !exact.insert(key(number))));
        assert_eq!(exact.len(), 10_000);
        assert!((170_000..=Exact::bytes_of(10_000)).contains(&exact.bytes()), "{}", exact.bytes());
    }
}
