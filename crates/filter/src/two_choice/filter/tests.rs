//! Error rate of a whole filter of the kind `two-choice`, before, during and after its growth.

use std::collections::HashSet;

use urlseen_fingerprint::Fingerprint;

use crate::two_choice::KeyBits;
use crate::two_choice::filter::*;
use crate::{KeyHasher, SHARDS, Seed};

/// Number h of the bits of a key in its shard. It is so small that errors are frequent.
const BITS: u32 = 11;

/// Number of keys of the whole filter at which it begins to grow.
const CAPACITY: u64 = 400 * SHARDS as u64;

/// Number of fingerprints that measure an error rate.
const UNSEEN: u64 = 100_000;

/// Filter with a model of its keys.
struct Filter {
    size: TwoChoiceSize,
    hasher: KeyHasher,
    filter: TwoChoiceFilter,
    random: fastrand::Rng,
    model: HashSet<KeyHash>,
}

impl Filter {
    fn new(seed: u32) -> Self {
        let bits = KeyBits::new(BITS).unwrap();
        let size =
            TwoChoiceSize { capacity: CAPACITY, grow_to: 4 * CAPACITY, bits, expires: false };
        Self {
            size,
            hasher: KeyHasher::new(Seed::new(seed)).with_bits(bits),
            filter: TwoChoiceFilter::new(size).unwrap(),
            random: fastrand::Rng::with_seed(seed.into()),
            model: HashSet::new(),
        }
    }

    /// Draws a fingerprint that was never drawn before, and returns its key hash.
    fn draw(&mut self) -> KeyHash {
        let mut raw = [0; 20];
        self.random.fill(&mut raw);
        self.hasher.key_hash(&Fingerprint::Raw20(raw))
    }

    /// Inserts keys until `is_enough` returns true.
    fn insert_until(&mut self, is_enough: impl Fn(&Self) -> bool) {
        while !is_enough(self) {
            for _ in 0..500 {
                let key_hash = self.draw();
                self.model.insert(key_hash);
                self.filter.insert(&[key_hash]).unwrap();
            }
        }
    }

    fn keys(&self) -> u64 {
        self.model.len() as u64
    }

    /// Counts the shards that are growing now.
    fn growing(&self) -> usize {
        self.filter.shards.iter().filter(|shard| shard.is_growing()).count()
    }

    /// Counts the shards that have grown, or have begun to grow.
    fn grown(&self) -> usize {
        let shards = ShardId::all().zip(self.filter.gauge.shown.shards());
        let grown = shards.filter(|&(shard, [_, slots, _])| {
            let first = self.size.slots(shard, 0);
            slots >= first / 4 * 5
        });
        grown.count()
    }

    /// Compares the share of unseen fingerprints that count as seen with n / 2^h, where n is the
    /// mean number of keys of a shard. Also compares the error rate that the filter shows.
    fn check(&mut self, when: &str) {
        assert_eq!(self.filter.gauge.fill().keys, self.keys(), "{when}");
        let expected = self.keys() as f64 / SHARDS as f64 / 2_f64.powi(BITS.cast_signed());
        let shown = self.filter.gauge.error_rate();
        assert!((shown - expected).abs() < 1e-12, "{when}: {shown}, not {expected}");

        let key_hashes: Vec<_> = (0..UNSEEN).map(|_| self.draw()).collect();
        let mut verdicts = Vec::new();
        self.filter.test(&key_hashes, &mut verdicts);
        for (key_hash, verdict) in key_hashes.iter().zip(&verdicts) {
            assert_eq!(*verdict, Verdict::of(self.model.contains(key_hash)), "{when}");
        }
        let wrong = verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count();
        let sigma = (UNSEEN as f64 * expected * (1.0 - expected)).sqrt();
        let (wrong, expected) = (wrong as f64, UNSEEN as f64 * expected);
        assert!((wrong - expected).abs() <= 3.0 * sigma, "{when}: {wrong}, not {expected}");
    }
}

/// With few bits, a fifth to a third of the unseen fingerprints are errors. So an error rate that
/// is wrong by 3 % is outside of three standard deviations.
#[test]
fn the_error_rate_is_the_number_of_keys_in_a_shard_divided_by_that_of_possible_keys() {
    for seed in [1, 2, 3] {
        let mut filter = Filter::new(seed);
        filter.insert_until(|filter| filter.keys() >= CAPACITY * 3 / 4);
        assert_eq!((filter.growing(), filter.grown()), (0, 0));
        filter.check(&format!("seed {seed}, before its growth"));

        filter.insert_until(|filter| filter.growing() >= 20 && filter.grown() >= SHARDS / 2);
        assert!(filter.grown() < SHARDS, "all shards have grown");
        filter.check(&format!("seed {seed}, during its growth"));

        filter.insert_until(|filter| filter.keys() >= CAPACITY * 3 / 2);
        assert_eq!(filter.grown(), SHARDS);
        filter.check(&format!("seed {seed}, after its growth"));
    }
}
