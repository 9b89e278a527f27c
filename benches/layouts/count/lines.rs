//! Filter of the kind `native`.

use std::ops::Range;

use urlseen_core::filter::native::{KeyHash, Native};
use urlseen_core::filter::{Geometry, Seed, Shards, Verdict};
use urlseen_core::fingerprint::Fingerprint;

use super::Fill;
use super::keys::fingerprint;

/// Number of keys that are set or tested at once.
const BATCH: u64 = 1 << 12;

/// Filter in memory, with a fixed seed.
pub struct Lines {
    native: Native,
    shards: Shards,
}

impl Lines {
    /// Allocates an empty filter. Its fixed seed gives the same counts each time.
    pub fn new(geometry: Geometry) -> Self {
        let native = Native::new(Seed::new(2026), geometry);
        let shards = Shards::allocate(native, 0, 1);
        Self { native, shards: shards.expect("a machine with memory for the filter") }
    }
}

impl Fill for Lines {
    fn fill(&mut self, keys: Range<u64>) {
        for batch in batches(keys) {
            self.shards.set_all(&key_hashes(self.native, batch));
        }
    }

    fn seen(&self, keys: Range<u64>) -> u64 {
        let of_batch = |batch| {
            let mut verdicts = Vec::new();
            self.shards.test_all(&key_hashes(self.native, batch), &mut verdicts);
            verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count() as u64
        };
        batches(keys).map(of_batch).sum()
    }
}

fn batches(keys: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = keys.clone().step_by(usize::try_from(BATCH).expect("a few thousand"));
    starts.map(move |first| first..keys.end.min(first + BATCH))
}

fn key_hashes(native: Native, keys: Range<u64>) -> Vec<KeyHash> {
    keys.map(|key| native.key_hash(&Fingerprint::from_text(&fingerprint(key)))).collect()
}
