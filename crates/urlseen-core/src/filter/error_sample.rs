//! Measured error rate of a filter in memory: an exact sample of the keys that it was asked.
//!
//! The sample of a shard has all keys whose word is at most a bound. The word is a hash of the key,
//! so the sample is as good as a random one. When the sample is full, its bound is halved, and
//! about half of its keys leave it. So it stays an even sample of all keys of the whole crawl. For
//! a large filter, the bound is low from the start, because each sampled key costs a lookup.
//!
//! A key counts once: by the first answer of the filter on it. If the filter reports the key as
//! seen, the answer is wrong. Later answers on a key in the sample count no more, so a key may be
//! forgotten or may expire.
//!
//! The log of a filter has only the keys that passed. So if a filter is recovered from its log,
//! wrong answers are missing: the sample is *partial*, and its error rate is a lower bound.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::layout::native::KeyHash;
use super::{Parameters, SHARDS, ShardId, Verdict};

/// Maximum number of sampled keys of a filter. A set of as many words takes 2.4 MB.
const MOST: usize = 896 * SHARDS;

/// The samples of those shards that belong to one owner.
#[derive(Debug)]
pub struct ErrorSample {
    /// Sample of each shard. `None` if the shard has keys on which the filter was not watched.
    shards: Vec<Option<ShardSample>>,
    /// Maximum number of sampled keys of a shard.
    most: usize,
    /// Sample of an empty shard.
    empty: ShardSample,
    gauge: Arc<Sampled>,
}

/// Counts of a sample, which all threads can read.
#[derive(Debug, Default)]
pub struct Sampled {
    asked: AtomicU64,
    wrong: AtomicU64,
    /// Number of shards without a sample.
    unwatched: AtomicUsize,
    /// Number of shards with a partial sample.
    partial: AtomicUsize,
}

/// Number of keys in a sample, and of those on which the filter was wrong.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Number of different keys, none of which was seen before.
    pub asked: u64,
    /// Number of these keys that the filter reported as seen.
    pub wrong: u64,
    /// True if wrong answers may be missing.
    pub is_partial: bool,
}

/// Sample of the keys of one shard.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSample {
    /// Number of times that the bound was halved.
    pub(crate) halvings: u8,
    /// Words of all keys in the sample.
    pub(crate) asked: HashSet<u64>,
    /// Words of the keys on which the filter was wrong.
    pub(crate) wrong: HashSet<u64>,
    /// True if some keys were inserted without an answer.
    pub(crate) is_partial: bool,
}

impl ErrorSample {
    /// Creates the empty sample of an empty filter.
    pub fn new(parameters: &Parameters) -> Self {
        let most = MOST / usize::from(parameters.hasher().partitions().get());
        let times = parameters.capacity().unwrap_or(0) / most.max(1) as u64;
        let halvings =
            times.checked_ilog2().map_or(0, |it| u8::try_from(it).expect("less than 64"));
        let empty = ShardSample { halvings, ..ShardSample::default() };
        Self {
            shards: vec![Some(empty.clone()); SHARDS],
            most: most / parameters.shards(),
            empty,
            gauge: Arc::default(),
        }
    }

    /// Returns the counts of the sample.
    pub fn gauge(&self) -> Arc<Sampled> {
        Arc::clone(&self.gauge)
    }

    /// Notes the answers of the filter on these keys.
    pub(super) fn answered(&mut self, key_hashes: &[KeyHash], verdicts: &[Verdict]) {
        self.note(key_hashes.iter().zip(verdicts).map(|(&it, &verdict)| (it, Some(verdict))));
    }

    /// Notes keys that are inserted: all of them after an answer, or in a recovery without one.
    pub(super) fn inserted(&mut self, key_hashes: &[KeyHash]) {
        self.note(key_hashes.iter().map(|&it| (it, None)));
    }

    fn note(&mut self, answers: impl Iterator<Item = (KeyHash, Option<Verdict>)>) {
        let mut is_changed = false;
        for (key_hash, answer) in answers {
            if let Some(sample) = &mut self.shards[key_hash.shard().index()] {
                is_changed |= sample.note(key_hash.word(), answer, self.most);
            }
        }
        if is_changed {
            self.publish();
        }
    }

    /// Copies the sample of a shard.
    pub(super) fn copy(&self, shard: ShardId) -> Option<ShardSample> {
        self.shards[shard.index()].clone()
    }

    /// Replaces the sample of a shard, after the content of the shard was replaced.
    pub(super) fn load(&mut self, shard: ShardId, sample: Option<ShardSample>) {
        self.shards[shard.index()] = sample.map(|mut sample| {
            sample.shrink(self.most);
            sample
        });
        self.publish();
    }

    /// Begins again, with a filter that was emptied.
    pub(super) fn clear(&mut self) {
        self.shards.fill(Some(self.empty.clone()));
        self.publish();
    }

    fn publish(&self) {
        let samples = || self.shards.iter().flatten();
        let count = |words: fn(&ShardSample) -> &HashSet<u64>| {
            samples().map(|sample| words(sample).len() as u64).sum::<u64>()
        };
        self.gauge.asked.store(count(|it| &it.asked), Ordering::Relaxed);
        self.gauge.wrong.store(count(|it| &it.wrong), Ordering::Relaxed);
        self.gauge.unwatched.store(SHARDS - samples().count(), Ordering::Relaxed);
        let partial = samples().filter(|sample| sample.is_partial).count();
        self.gauge.partial.store(partial, Ordering::Relaxed);
    }
}

impl Sampled {
    /// Returns the counts. `None` if the filter has keys from a time in which it was not watched:
    /// a key of that time would count as wrong.
    pub fn measured(&self) -> Option<Measured> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let is_whole = self.unwatched.load(Ordering::Relaxed) == 0;
        is_whole.then(|| Measured {
            asked: load(&self.asked),
            wrong: load(&self.wrong),
            is_partial: self.partial.load(Ordering::Relaxed) > 0,
        })
    }
}

impl std::ops::Add for Measured {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            wrong: self.wrong + other.wrong,
            is_partial: self.is_partial || other.is_partial,
        }
    }
}

impl ShardSample {
    /// Notes the first answer on a key. Returns true if the sample has changed.
    fn note(&mut self, word: u64, answer: Option<Verdict>, most: usize) -> bool {
        if word > self.bound() || !self.asked.insert(word) {
            return false;
        }
        match answer {
            Some(Verdict::Seen) => _ = self.wrong.insert(word),
            Some(Verdict::Unseen) => {}
            None => self.is_partial = true,
        }
        self.shrink(most);
        true
    }

    /// Halves the bound until the sample has at most this number of keys.
    fn shrink(&mut self, most: usize) {
        while self.asked.len() > most && self.bound() > 0 {
            self.halvings += 1;
            let bound = self.bound();
            for words in [&mut self.asked, &mut self.wrong] {
                words.retain(|&word| word <= bound);
            }
        }
    }

    /// Returns the maximum of the words in the sample.
    fn bound(&self) -> u64 {
        u64::MAX.checked_shr(self.halvings.into()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{ForgettingFilter, Seed, Sizing};
    use crate::fingerprint::Fingerprint;

    /// A native filter with an error rate of 1e-3 at this capacity.
    fn parameters(capacity: u64) -> Parameters {
        let capacity = capacity.to_string().parse().unwrap();
        Parameters::native(&Sizing::new(capacity, "1e-3".parse().unwrap()), Some(Seed::new(7)))
    }

    fn sampled(parameters: &Parameters) -> (ForgettingFilter, Arc<Sampled>) {
        let sample = ErrorSample::new(parameters);
        let gauge = sample.gauge();
        let filter = parameters.build(0, 1).unwrap();
        (ForgettingFilter::new(filter, Arc::default(), Some(sample)), gauge)
    }

    /// Adds different keys, as a crawl that finds them. Returns the number of lost ones.
    fn crawl(filter: &mut ForgettingFilter, parameters: &Parameters, keys: u64) -> u64 {
        let hasher = parameters.hasher();
        let mut random = fastrand::Rng::with_seed(1);
        let mut lost = 0;
        for _ in 0..keys / 1000 {
            let mut key = || {
                let mut raw = [0; 20];
                random.fill(&mut raw);
                hasher.key_hash(&Fingerprint::Raw20(raw))
            };
            let key_hashes: Vec<_> = (0..1000).map(|_| key()).collect();
            let mut verdicts = Vec::new();
            // Links are found again and again.
            for _ in 0..2 {
                verdicts.clear();
                filter.test(&key_hashes, &mut verdicts);
            }
            let unseen = key_hashes.into_iter().zip(&verdicts);
            let unseen: Vec<_> =
                unseen.filter_map(|(it, &is)| (is == Verdict::Unseen).then_some(it)).collect();
            lost += 1000 - unseen.len() as u64;
            filter.insert(&unseen).unwrap();
        }
        lost
    }

    #[test]
    fn a_sample_that_is_not_full_has_every_key_once() {
        let parameters = parameters(100_000);
        let (mut filter, gauge) = sampled(&parameters);
        let lost = crawl(&mut filter, &parameters, 150_000);
        assert!(lost > 100, "{lost}");
        let measured = Measured { asked: 150_000, wrong: lost, is_partial: false };
        assert_eq!(gauge.measured(), Some(measured));
    }

    #[test]
    fn a_full_sample_is_an_even_one_of_all_keys() {
        // The sample is full after the first tenth of the keys.
        let parameters = parameters(200_000);
        let (mut filter, gauge) = sampled(&parameters);
        let lost = crawl(&mut filter, &parameters, 2_000_000);
        let Measured { asked, wrong, .. } = gauge.measured().unwrap();
        assert!((MOST as u64 / 3..=MOST as u64).contains(&asked), "{asked}");
        let expected = lost as f64 * asked as f64 / 2e6;
        // The number of lost keys in an even sample has the deviation of a binomial distribution.
        assert!((wrong as f64 - expected).abs() < 4.0 * expected.sqrt(), "{wrong} of {expected}");
    }

    #[test]
    fn the_sample_of_a_large_filter_is_small_from_the_start() {
        let parameters = parameters(10_000_000);
        let (mut filter, gauge) = sampled(&parameters);
        crawl(&mut filter, &parameters, 320_000);
        let asked = gauge.measured().unwrap().asked;
        // One of 32 keys is in the sample.
        assert!((9_600..10_400).contains(&asked), "{asked}");
    }

    #[test]
    fn a_key_counts_by_its_first_answer() {
        let parameters = parameters(1000);
        let (mut filter, gauge) = sampled(&parameters);
        crawl(&mut filter, &parameters, 1000);
        let before = gauge.measured();
        let key_hash = parameters.hasher().key_hash(&Fingerprint::Raw20([1; 20]));
        filter.test(&[key_hash], &mut Vec::new());
        for _ in 0..2 {
            filter.insert(&[key_hash]).unwrap();
            filter.test(&[key_hash], &mut Vec::new());
            filter.forget(key_hash);
            filter.test(&[key_hash], &mut Vec::new());
        }
        let one = Measured { asked: 1, ..Measured::default() };
        assert_eq!(gauge.measured(), before.map(|before| before + one));
        // A recovery from the log inserts keys without an answer.
        filter.insert(&[parameters.hasher().key_hash(&Fingerprint::Raw20([2; 20]))]).unwrap();
        assert!(gauge.measured().unwrap().is_partial);
        filter.clear();
        assert_eq!(gauge.measured(), Some(Measured::default()));
    }

    #[test]
    fn a_loaded_shard_is_measured_only_with_its_sample() {
        let parameters = parameters(1000);
        let (mut filter, gauge) = sampled(&parameters);
        crawl(&mut filter, &parameters, 1000);
        let measured = gauge.measured();
        let shard = ShardId::all().last().unwrap();
        let (blob, _) = filter.save(shard, Vec::new());
        let mut bytes = Vec::new();
        blob.write(&mut bytes).unwrap();
        let sample = filter.sample(shard).unwrap();
        filter.load(shard, blob.keys(), blob.len(), &mut &*bytes).unwrap();
        assert_eq!(gauge.measured(), None);
        filter.load_sample(shard, sample);
        assert_eq!(gauge.measured(), measured);
    }
}
