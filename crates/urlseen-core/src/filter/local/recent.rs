//! A bounded memory of fingerprints that are known to be seen.

use std::io::{self, Read};
use std::sync::Arc;

use super::{Blob, Fill, FilterKind, Full, Gauge, Saved};
use crate::filter::layout::native::KeyHash;
use crate::filter::{SHARDS, ShardId, Verdict};

/// Remembers some of the fingerprints that were set last. A fingerprint that it calls seen was set,
/// except with a chance of 2^-64 a test. A fingerprint that it calls unseen may have been evicted,
/// so the caller asks Redis.
///
/// It is a table in which each fingerprint has one place, by one half of its hash. The fingerprint
/// that was set last has the place, and is known by the other half.
#[derive(Debug)]
pub struct Recent {
    /// Names of fingerprints; 0 in an empty place.
    places: Box<[u64]>,
}

impl Recent {
    /// Makes a memory of at most `most` fingerprints, with 8 bytes for each. Their number is the
    /// largest power of two that is not above `most`, and at least one.
    pub fn new(most: usize) -> Self {
        let places = 1 << most.max(1).ilog2();
        Self { places: vec![0; places].into() }
    }

    fn place(&self, key_hash: KeyHash) -> usize {
        // The number of places is a power of two, so this is a part of the hash.
        #[allow(clippy::cast_possible_truncation)]
        let hash = key_hash.id() as usize;
        hash & (self.places.len() - 1)
    }
}

/// Stands in for a filter in Redis, which has the fill. It is never stored.
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
        Arc::new(InRedis)
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

/// Gauge without figures: the filter is in Redis.
#[derive(Debug)]
struct InRedis;

impl Gauge for InRedis {
    fn fill(&self) -> Fill {
        Fill::default()
    }

    fn error_rate(&self) -> f64 {
        0.0
    }

    fn keys(&self, _: &mut [u64; SHARDS]) {}
}

/// Returns the name of a fingerprint in its place; never 0.
fn name(key_hash: KeyHash) -> u64 {
    // The upper half: the place comes from the lower one.
    #[allow(clippy::cast_possible_truncation)]
    let name = (key_hash.id() >> u64::BITS) as u64;
    name.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::native::Native;
    use crate::filter::{Blocks, Geometry, Seed};
    use crate::fingerprint::Fingerprint;

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
    fn what_was_set_last_is_remembered_and_nothing_else() {
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
    fn it_forgets_rather_than_grow() {
        let mut recent = Recent::new(100);
        let key_hashes = key_hashes(200);
        recent.insert(&key_hashes).unwrap();
        assert_eq!(recent.places.len(), 64);
        let held = seen(&recent, &key_hashes);
        assert!((40..=64).contains(&held), "{held}");
        assert_eq!(seen(&recent, &key_hashes[199..]), 1);
    }
}
