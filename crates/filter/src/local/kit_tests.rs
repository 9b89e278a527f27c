//! Test kit: tests of the trait's guarantees for each kind of filter in memory.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;

use urlseen_fingerprint::Fingerprint;

use super::*;
use crate::choice::FilterPlace;
use crate::{KeyHasher, Kind, Parameters};

/// Capacity and error rate of the filters under test.
const CAPACITY: u64 = 20_000;
const ERROR_RATE: f64 = 0.01;

/// Kind of filter under test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    kind: Kind,
    /// True if the keys expire.
    expires: bool,
    error_rate: f64,
}

impl Case {
    /// Returns all kinds in memory. Kinds whose keys can expire come twice.
    fn all() -> impl Iterator<Item = Self> {
        let kinds = Kind::all_in(FilterPlace::Local).map(|kind| (kind, false));
        let kinds = kinds.map(|(kind, expires)| Self { kind, expires, error_rate: ERROR_RATE });
        kinds.chain(Self::expiring(ERROR_RATE))
    }

    /// Returns the kinds in memory whose keys expire.
    pub(super) fn expiring(error_rate: f64) -> impl Iterator<Item = Self> {
        let kinds = Kind::all_in(FilterPlace::Local);
        let kinds = kinds.filter(|kind| kind.keys().contains(&"filter.expire_after"));
        kinds.map(move |kind| Self { kind, expires: true, error_rate })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind, if self.expires { " with expire_after" } else { "" })
    }
}

/// Filter under test, with its parameters.
pub(super) struct Filter {
    parameters: Parameters,
    pub(super) hasher: KeyHasher,
    pub(super) kind: Box<dyn FilterKind>,
}

impl Filter {
    pub(super) fn new(case: Case, seed: u32) -> Self {
        let value = |name| match name {
            "filter.capacity" | "filter.grow_to" => Some(CAPACITY.to_string()),
            "filter.error_rate" => Some(case.error_rate.to_string()),
            "filter.expire_after" => case.expires.then(|| "30d".to_owned()),
            "filter.expansion" => Some("2".to_owned()),
            "filter.seed" => Some(seed.to_string()),
            _ => None,
        };
        let parameters = case.kind.read(&value).expect("parameters of the kind");
        let kind = parameters.build().expect("memory");
        Self { hasher: parameters.hasher(), kind, parameters }
    }

    fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        ShardId::all().take(self.parameters.shards())
    }

    fn insert(&mut self, keys: impl Iterator<Item = u64>) {
        for key in keys {
            let key_hash = self.key_hash(key);
            self.kind.reserve(key_hash.shard(), 1, Effort::Any).expect("room");
            self.kind.insert(&[key_hash]).expect("room was made");
        }
    }

    fn has(&self, key: u64) -> bool {
        let key_hash = self.key_hash(key);
        let mut verdicts = Vec::new();
        self.kind.test(&[key_hash], &mut verdicts);
        verdicts == [Verdict::Seen]
    }

    fn count(&self, keys: impl Iterator<Item = u64>) -> u64 {
        keys.map(|key| u64::from(self.has(key))).sum()
    }

    /// Returns the keys of a shard, if the kind stores keys.
    pub(super) fn stored(&self, shard: ShardId) -> Option<Vec<KeyHash>> {
        let keys = self.kind.save(shard, Vec::new()).key_hashes(shard)?;
        Some(keys.into_iter().map(|(key_hash, _)| key_hash).collect())
    }

    fn key_hash(&self, key: u64) -> KeyHash {
        // Every byte of the fingerprint is evenly spread, as in a digest.
        let spread = u128::from(key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut raw = [0; 20];
        raw[..16].copy_from_slice(&spread.to_be_bytes());
        raw[16..].copy_from_slice(&spread.to_le_bytes()[..4]);
        raw[0] ^= raw[9];
        self.hasher.key_hash(&Fingerprint::Raw20(raw))
    }

    pub(super) fn fill(&self) -> Fill {
        self.kind.gauge().fill()
    }

    fn error_rate(&self) -> f64 {
        self.kind.gauge().error_rate()
    }
}

/// Runs a check on a filter of every kind in memory. If its keys can expire, runs it again.
fn each(check: impl Fn(Case, Filter)) {
    let cases: Vec<_> = Case::all().collect();
    assert!(cases.len() >= 5, "{cases:?}");
    for case in cases {
        check(case, Filter::new(case, 7));
    }
}

#[test]
fn a_gauge_shows_each_key_whether_keys_come_singly_or_together() {
    each(|case, mut singly| {
        singly.insert(0..CAPACITY);
        let mut together = Filter::new(case, 7);
        let key_hashes: Vec<_> = (0..CAPACITY).map(|key| together.key_hash(key)).collect();
        // The filter grows as far as for single keys.
        key_hashes.chunks(100).for_each(|keys| {
            together.kind.reserve_for(keys).unwrap();
            together.kind.insert(keys).unwrap();
        });
        for filter in [&mut singly, &mut together] {
            filter.kind.remove(key_hashes[0]);
        }
        assert_eq!(singly.fill(), together.fill(), "{case}");
    });
}

#[test]
fn a_united_filter_has_the_keys_of_both() {
    each(|kind, mut filter| {
        if filter.stored(ShardId::WHOLE).is_none() {
            return;
        }
        let [first, second] = [0..CAPACITY / 2, CAPACITY / 4..CAPACITY * 3 / 4];
        filter.insert(first);
        let mut other = Filter::new(kind, 7);
        other.insert(second);
        for shard in ShardId::all() {
            let united = filter.kind.unite(shard, &*other.kind);
            united.unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
        let all = CAPACITY * 3 / 4;
        assert_eq!(filter.count(0..all), all, "{kind}");
        let counted = filter.fill().counted as f64 / all as f64;
        assert!((0.98..1.02).contains(&counted), "{kind}: {counted}");
    });
}

#[test]
fn unseen_keys_are_reported_as_seen_at_the_computed_error_rate() {
    /// Number of unseen keys in the test.
    const UNSEEN: u64 = 200_000;
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY);
        let rate = filter.error_rate();
        assert!((0.0..=1.2 * ERROR_RATE).contains(&rate), "{kind}: {rate}");
        let expected = rate * UNSEEN as f64;
        let sigma = (expected * (1.0 - rate)).sqrt();
        let wrong = filter.count(CAPACITY..CAPACITY + UNSEEN) as f64;
        assert!((wrong - expected).abs() <= 3.0 * sigma, "{kind}: {wrong}, not {expected}");
    });
}

#[test]
fn a_filter_that_is_saved_and_loaded_is_the_same() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 2);
        let mut other = Filter::new(kind, 7);
        other.insert(CAPACITY..CAPACITY + 100);
        for shard in filter.shards() {
            let blob = filter.kind.save(shard, Vec::new());
            // Keys that are set after the save are not in the blob.
            filter.insert(CAPACITY + shard.index() as u64..=CAPACITY + shard.index() as u64);
            let mut bytes = Vec::new();
            blob.write(&mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, blob.len(), "{kind}");
            let mut from = &bytes[..];
            other.kind.load(shard, blob.keys(), blob.len(), &mut from).unwrap();
            assert_eq!(from.read(&mut [0]).unwrap(), 0, "{kind}: all is read");
        }
        let mut model = Filter::new(kind, 7);
        model.insert(0..CAPACITY / 2);
        if filter.parameters.shards() == 1 {
            assert_eq!(other.fill(), model.fill(), "{kind}");
        }
        assert_eq!(other.count(0..CAPACITY / 2), CAPACITY / 2, "{kind}");
        let unseen = 2 * CAPACITY..4 * CAPACITY;
        let agree = unseen.filter(|&key| other.has(key) == model.has(key)).count() as u64;
        // Each save of a shard is followed by an insertion. So the shards that are saved last
        // already contain some of the inserted keys.
        assert!(agree >= 2 * CAPACITY - 200, "{kind}: {agree}");
    });
}

/// Fails if a large filter with few keys saves no snapshot for a long time.
#[test]
fn the_size_of_a_snapshot_is_known_before_it_is_saved() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 2);
        let shards: Vec<_> = filter.shards().collect();
        let blobs = shards.into_iter().map(|shard| filter.kind.save(shard, Vec::new()));
        let saved = blobs.map(|blob| blob.len()).sum::<u64>() as f64;
        let told = filter.kind.gauge().saved_bytes() as f64;
        assert!((0.9..1.5).contains(&(told / saved)), "{kind}: {told}, and {saved} were saved");
    });
}

#[test]
fn a_shard_without_its_last_byte_is_refused_and_empty() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 2);
        let shard = filter.shards().last().unwrap();
        let blob = filter.kind.save(shard, Vec::new());
        let (keys, len) = (blob.keys(), blob.len());
        let mut bytes = Vec::new();
        blob.write(&mut bytes).unwrap();
        bytes.pop();
        for len in [len, len - 1] {
            let loaded = filter.kind.load(shard, keys, len, &mut &bytes[..]);
            assert!(loaded.is_err(), "{kind}: {len}");
            let of_shard = |key: &u64| filter.key_hash(*key).shard() == shard;
            let key_hashes: Vec<_> = (0..CAPACITY / 2).filter(of_shard).collect();
            assert!(!key_hashes.is_empty());
            assert_eq!(filter.count(key_hashes.into_iter()), 0, "{kind}: {len}");
        }
    });
}

#[test]
fn a_key_that_was_removed_is_unseen_and_the_others_stay() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 10);
        for key in 0..100 {
            let key_hash = filter.key_hash(key);
            let is_removed = filter.kind.remove(key_hash);
            assert_eq!(filter.has(key), !is_removed, "{kind}");
        }
        assert_eq!(filter.count(100..CAPACITY / 10), CAPACITY / 10 - 100, "{kind}");
    });
}

#[test]
fn the_keys_of_all_shards_are_the_keys_of_the_filter() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 10);
        let Some(parts) = filter.shards().map(|it| filter.stored(it)).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        for (shard, keys) in ShardId::all().zip(&parts) {
            assert!(keys.iter().all(|it| it.shard() == shard), "{kind}");
        }
        let set = |keys: &[KeyHash]| keys.iter().copied().collect::<HashSet<_>>();
        let stored: Vec<_> = (0..CAPACITY / 10).map(|key| filter.key_hash(key)).collect();
        let (all, stored) = (parts.concat(), set(&stored));
        assert!(set(&all) == stored && all.len() == stored.len(), "{kind}");
    });
}

#[test]
fn keys_past_the_capacity_are_seen_after_their_insertion() {
    each(|kind, mut filter| {
        let bytes = filter.fill().bytes;
        filter.insert(0..4 * CAPACITY);
        assert_eq!(filter.count(0..4 * CAPACITY), 4 * CAPACITY, "{kind}");
        let has_grown = filter.fill().bytes > bytes;
        let is_worse = filter.error_rate() > 2.0 * ERROR_RATE;
        assert!(has_grown || is_worse, "{kind}: it grows, or its error rate does");
    });
}

#[test]
fn another_seed_gives_other_hashes() {
    each(|kind, filter| {
        let other = Filter::new(kind, 8);
        let same = (0..1000).filter(|&key| filter.key_hash(key) == other.key_hash(key)).count();
        let has_seed = filter.parameters.seed().is_some();
        assert_eq!(same, if has_seed { 0 } else { 1000 }, "{kind}");
    });
}

#[test]
fn the_fill_counts_the_keys_and_is_zero_after_a_clear() {
    each(|kind, mut filter| {
        filter.insert(0..CAPACITY / 2);
        let Fill { keys, counted, .. } = filter.fill();
        let expected = (CAPACITY / 2) as f64;
        assert!((keys as f64 / expected - 1.0).abs() < 0.02, "{kind}: {keys}");
        assert!((counted as f64 / expected - 1.0).abs() < 0.02, "{kind}: {counted}");
        filter.kind.clear();
        assert_eq!((filter.fill().keys, filter.count(0..CAPACITY / 2)), (0, 0), "{kind}");
    });
}
