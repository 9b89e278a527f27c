//! A bounded memory of fingerprints that are known to be seen.

use super::Verdict;
use super::layout::native::KeyHash;

/// Remembers some of the fingerprints that were set last: what it calls seen was set, but for a
/// chance of 2^-64 a test. What it has forgotten it calls unseen, and somebody else has to be
/// asked.
///
/// A table in which each fingerprint has one place, by one half of its hash; whichever was set last
/// has it, under the other half.
#[derive(Debug)]
pub struct Recent {
    /// 0 where nothing is.
    places: Box<[u64]>,
}

impl Recent {
    /// A memory of at most so many fingerprints, and 8 bytes for each: the power of two that is
    /// not above `most`, and at least one.
    pub fn new(most: usize) -> Self {
        let places = 1 << most.max(1).ilog2();
        Self { places: vec![0; places].into() }
    }

    /// Whether the fingerprint is known to be seen.
    #[inline]
    pub fn test(&self, key_hash: KeyHash) -> Verdict {
        Verdict::of(self.places[self.place(key_hash)] == name(key_hash))
    }

    /// The fingerprint is seen.
    #[inline]
    pub fn set(&mut self, key_hash: KeyHash) {
        let place = self.place(key_hash);
        self.places[place] = name(key_hash);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(0);
    }

    fn place(&self, key_hash: KeyHash) -> usize {
        // A power of two, so this is a part of the hash.
        #[allow(clippy::cast_possible_truncation)]
        let hash = key_hash.id() as usize;
        hash & (self.places.len() - 1)
    }
}

/// What stands for a fingerprint in its place; never 0.
fn name(key_hash: KeyHash) -> u64 {
    // The upper half: the place comes from the lower one.
    #[allow(clippy::cast_possible_truncation)]
    let name = (key_hash.id() >> u64::BITS) as u64;
    name.max(1)
}

#[cfg(test)]
mod tests {
    use super::super::{Blocks, Geometry, Seed, native::Native};
    use super::*;
    use crate::fingerprint::Fingerprint;

    fn key_hashes(count: u8) -> Vec<KeyHash> {
        let native = Native::new(Seed::new(5), Geometry::new(Blocks::One, 9, 5).unwrap());
        (0..count).map(|byte| native.key_hash(&Fingerprint::Raw20([byte; 20]))).collect()
    }

    #[test]
    fn what_was_set_last_is_remembered_and_nothing_else() {
        let mut recent = Recent::new(1000);
        let key_hashes = key_hashes(200);
        let (set, others) = key_hashes.split_at(10);
        for key_hash in set {
            assert_eq!(recent.test(*key_hash), Verdict::Unseen);
            recent.set(*key_hash);
            assert_eq!(recent.test(*key_hash), Verdict::Seen);
        }
        assert!(others.iter().all(|key_hash| recent.test(*key_hash) == Verdict::Unseen));
        recent.clear();
        assert!(set.iter().all(|key_hash| recent.test(*key_hash) == Verdict::Unseen));
    }

    #[test]
    fn it_forgets_rather_than_grow() {
        let mut recent = Recent::new(100);
        let key_hashes = key_hashes(200);
        for key_hash in &key_hashes {
            recent.set(*key_hash);
        }
        assert_eq!(recent.places.len(), 64);
        let held =
            key_hashes.iter().filter(|key_hash| recent.test(**key_hash) == Verdict::Seen).count();
        assert!((40..=64).contains(&held), "{held}");
        assert_eq!(recent.test(key_hashes[199]), Verdict::Seen);
    }
}
