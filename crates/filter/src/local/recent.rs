//! Bounded cache of fingerprints that were set.

use std::io::{self, Read};
use std::sync::Arc;

use super::{Blob, FilterKind, Full, Gauge, Saved};
use crate::{KeyHash, ShardId, Verdict};

/// Cache of fingerprints that were set recently. A fingerprint that the cache reports as seen was
/// set, except with a chance of 2^-64 for each test. A fingerprint that the cache reports as unseen
/// may have been set and evicted, so the caller asks Redis.
///
/// The cache is a table. One half of a fingerprint's hash chooses its place in the table. The place
/// holds the other half of the hash of the last fingerprint that was set there.
#[derive(Debug)]
pub struct Recent {
    /// Upper halves of the hashes; 0 in an empty place.
    places: Box<[u64]>,
}

impl Recent {
    /// Creates an empty cache of at most `most` fingerprints, with 8 bytes for each place. The
    /// number of places is the largest power of two up to `most`, and at least one.
    pub fn new(most: usize) -> Self {
        let places = 1 << most.max(1).ilog2();
        Self { places: vec![0; places].into() }
    }

    fn place(&self, key_hash: KeyHash) -> usize {
        // Only the lowest bits are used, because the number of places is a power of two.
        #[allow(clippy::cast_possible_truncation)]
        let hash = key_hash.id() as usize;
        hash & (self.places.len() - 1)
    }
}

/// If the filter is in Redis, the engine uses this cache in place of a filter in memory. The cache
/// has no fill, and is never stored.
impl FilterKind for Recent {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let is_there = |&it: &KeyHash| self.places[self.place(it)] == name(it);
        verdicts.extend(key_hashes.iter().map(|it| Verdict::of(is_there(it))));
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        for &key_hash in key_hashes {
            let place = self.place(key_hash);
            self.places[place] = name(key_hash);
        }
        Ok(())
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(RecentGauge)
    }

    fn save(&self, _: ShardId, _: Vec<u8>) -> Box<dyn Blob> {
        Box::new(Saved::default())
    }

    fn load(&mut self, _: ShardId, _: u64, _: u64, _: &mut dyn Read) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn clear(&mut self) {
        self.places.fill(0);
    }
}

/// Gauge without figures, because the filter is in Redis.
#[derive(Debug)]
struct RecentGauge;

impl Gauge for RecentGauge {}

/// Returns the upper half of a key's hash, or 1 if that is 0.
fn name(key_hash: KeyHash) -> u64 {
    // The upper half, because the lower half has already chosen the place.
    #[allow(clippy::cast_possible_truncation)]
    let name = (key_hash.id() >> u64::BITS) as u64;
    name.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::Native;
    use crate::{Blocks, Geometry, Seed};
    use urlseen_fingerprint::Fingerprint;

    fn key_hashes(count: u8) -> Vec<KeyHash> {
        let native = Native::new(Seed::new(5), Geometry::new(Blocks::One, 9, 5).unwrap());
        (0..count).map(|byte| native.key_hash(&Fingerprint::Raw20([byte; 20]))).collect()
    }

    fn seen(recent: &Recent, key_hashes: &[KeyHash]) -> usize {
        let mut verdicts = Vec::new();
        recent.test(key_hashes, &mut verdicts);
        verdicts.into_iter().filter(|&verdict| verdict == Verdict::Seen).count()
    }

    #[test]
    fn fingerprints_are_seen_after_they_were_set_and_others_are_not() {
        let mut recent = Recent::new(1000);
        let key_hashes = key_hashes(200);
        let (set, others) = key_hashes.split_at(10);
        for &key_hash in set {
            assert_eq!(seen(&recent, &[key_hash]), 0);
            recent.insert(&[key_hash]).unwrap();
            assert_eq!(seen(&recent, &[key_hash]), 1);
        }
        assert_eq!(seen(&recent, others), 0);
        recent.clear();
        assert_eq!(seen(&recent, set), 0);
    }

    #[test]
    fn a_full_cache_replaces_old_fingerprints() {
        let mut recent = Recent::new(100);
        let key_hashes = key_hashes(200);
        recent.insert(&key_hashes).unwrap();
        assert_eq!(recent.places.len(), 64);
        let held = seen(&recent, &key_hashes);
        assert!((40..=64).contains(&held), "{held}");
        assert_eq!(seen(&recent, &key_hashes[199..]), 1);
    }
}
