//! Tests of the kinds of filters whose keys expire: compares filters with a map from keys to
//! generations. Cites the rule G2.

use std::collections::BTreeMap;

use proptest::prelude::*;
use urlseen_fingerprint::Fingerprint;

use super::kit_tests::{Case, Filter};
use super::*;

/// Error rate at which the kinds tell all keys of the tests apart.
const ERROR_RATE: f64 = 1e-9;

/// Operation on a filter and on its model.
#[derive(Debug, Clone)]
enum Step {
    /// Insert this many keys from this one on, which were let through this many generations ago.
    /// They never expire if this is [`FOREVER`].
    Insert(u64, u64, u32),
    /// Remove this many keys from this one on.
    Remove(u64, u64),
    /// Begin the generation that comes this many later.
    Begin(u32),
    /// Sweep this many times.
    Sweep(u8),
    /// Save the filter, and load it into a new one, which is this many generations later.
    Reload(u32),
    /// Add the keys of a filter that is this many generations later. It has this many keys from
    /// this one on, which were let through this many generations before.
    Unite(u32, u64, u64, u32),
}

/// Stands for the generation of keys that never expire, in a [`Step`].
const FOREVER: u32 = 8;

/// Filter, and the map that it must equal.
struct Pair {
    case: Case,
    filter: Filter,
    model: BTreeMap<u64, Generation>,
    now: Generation,
}

/// Returns the key hash of a number. All of them are in three shards, so the shards grow.
fn key_hash(filter: &Filter, number: u64) -> KeyHash {
    let spread = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let mut raw = [0; 20];
    raw[..16].copy_from_slice(&spread.to_be_bytes());
    raw[0] = (number % 3) as u8;
    filter.hasher.key_hash(&Fingerprint::Raw20(raw))
}

impl Filter {
    fn insert_in(&mut self, generation: Generation, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            let key_hash = key_hash(self, number);
            self.kind.reserve(key_hash.shard(), 1, Effort::Any).unwrap();
            self.kind.insert_in(generation, &[key_hash]).unwrap();
        }
    }

    fn begin(&mut self, generation: Generation) {
        self.kind.begin_generation(generation);
    }

    fn generation(&mut self, number: u64) -> Option<Generation> {
        let key_hash = key_hash(self, number);
        self.kind.ages().unwrap().generation(key_hash)
    }

    fn generations(&self) -> Generations {
        self.kind.gauge().generations().unwrap()
    }

    fn reloaded(&mut self, case: Case, now: Generation) -> Self {
        let mut other = Self::new(case, 7);
        other.begin(now);
        for shard in ShardId::all() {
            let (blob, mut bytes) = (self.kind.save(shard, Vec::new()), Vec::new());
            blob.write(&mut bytes).unwrap();
            let (keys, len) = (blob.keys(), blob.len());
            other.kind.load(shard, keys, len, &mut &bytes[..]).unwrap();
        }
        other
    }
}

impl Pair {
    fn new(case: Case) -> Self {
        let (mut filter, now) = (Filter::new(case, 7), Generation::new(100));
        filter.begin(now);
        Self { case, filter, model: BTreeMap::new(), now }
    }

    fn ago(&self, age: u32) -> Generation {
        if age == FOREVER { Generation::FOREVER } else { self.now.earlier(age) }
    }

    fn begin(&mut self, later: u32) {
        self.now = self.now.later(later);
        self.model.retain(|_, generation| generation.age_in(self.now).is_some());
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert(from, count, age) => {
                let generation = self.ago(age);
                self.filter.insert_in(generation, from..from + count);
                self.model.extend((from..from + count).map(|number| (number, generation)));
                self.begin(0);
            }
            Step::Remove(from, count) => {
                for number in from..from + count {
                    let key_hash = key_hash(&self.filter, number);
                    self.filter.kind.remove(key_hash);
                    self.model.remove(&number);
                }
            }
            Step::Begin(later) => {
                self.begin(later);
                self.filter.begin(self.now);
            }
            Step::Sweep(times) => {
                (0..times).for_each(|_| _ = self.filter.kind.ages().unwrap().sweep());
            }
            Step::Reload(later) => {
                self.begin(later);
                self.filter = self.filter.reloaded(self.case, self.now);
            }
            Step::Unite(later, from, count, age) => {
                self.begin(later);
                let (mut other, generation) = (Filter::new(self.case, 7), self.ago(age));
                other.begin(self.now);
                other.insert_in(generation, from..from + count);
                for shard in ShardId::all() {
                    self.filter.kind.unite(shard, &*other.kind).unwrap();
                }
                for number in from..from + count {
                    let known = self.model.entry(number).or_insert(generation);
                    *known = generation.max(*known);
                }
                self.begin(0);
            }
        }
    }

    /// Checks that the filter has exactly the keys of the map.
    fn check(&mut self, all: u64) {
        let Self { case, filter, model, now } = self;
        let stored = ShardId::all().flat_map(|shard| filter.stored(shard).unwrap());
        let mut stored: Vec<_> = stored.map(|it| (it.shard(), it.id())).collect();
        let key_hashes = model.keys().map(|&number| key_hash(filter, number));
        let mut expected: Vec<_> = key_hashes.map(|it| (it.shard(), it.id())).collect();
        stored.sort_unstable();
        expected.sort_unstable();
        assert_eq!(stored, expected, "{case}");
        for number in (0..all).step_by(5) {
            let (key_hash, mut verdicts) = (key_hash(filter, number), Vec::new());
            filter.kind.test(&[key_hash], &mut verdicts);
            assert_eq!(verdicts, [Verdict::of(model.contains_key(&number))], "{case}: {number}");
            assert_eq!(filter.generation(number), model.get(&number).copied(), "{case}: {number}");
        }
        let (shown, keys) = (filter.generations(), model.len() as u64);
        let of_age = |age| {
            let live = model.values().filter(|&&it| it != Generation::FOREVER);
            live.filter(|it| it.age_in(*now) == Some(age)).count() as u64
        };
        assert_eq!((shown.now, shown.keys), (*now, [0, 1, 2, 3, 4, 5].map(of_age)), "{case}");
        assert_eq!(shown.forever, keys - shown.keys.iter().sum::<u64>(), "{case}");
        assert_eq!((filter.fill().keys, filter.fill().counted), (keys, keys), "{case}");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..3000_u64, 0..1500_u64);
    let age = || prop_oneof![3 => 0..7_u32, 1 => Just(FOREVER)];
    let step = prop_oneof![
        4 => (range(), age()).prop_map(|((from, count), age)| Step::Insert(from, count, age)),
        2 => range().prop_map(|(from, count)| Step::Remove(from, count)),
        2 => (0..9_u32).prop_map(Step::Begin),
        1 => (0..3_u8).prop_map(Step::Sweep),
        1 => (0..4_u32).prop_map(Step::Reload),
        1 => (0..3_u32, range(), age())
            .prop_map(|(later, (from, count), age)| Step::Unite(later, from, count, age)),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_filter_has_exactly_the_keys_of_a_map_with_their_generations(steps in steps()) {
        for case in Case::expiring(ERROR_RATE) {
            let mut pair = Pair::new(case);
            for step in &steps {
                pair.run(step);
                pair.check(4500);
            }
        }
    }
}

/// Runs a check on each kind whose keys expire.
fn each(check: impl Fn(Case, Pair)) {
    let cases: Vec<_> = Case::expiring(ERROR_RATE).collect();
    assert!(!cases.is_empty());
    for case in cases {
        check(case, Pair::new(case));
    }
}

/// Rule G2: a shard has absolute generations. A stamp of an old snapshot may stand for another
/// generation when the shard is loaded.
#[test]
fn a_saved_shard_has_no_expired_keys_when_it_is_loaded_later() {
    each(|case, mut pair| {
        for number in 0..12 {
            pair.run(&Step::Insert(number, 1, 0));
            pair.run(&Step::Begin(u32::from(number < 11)));
        }
        pair.run(&Step::Insert(12, 1, FOREVER));
        for later in 0..9 {
            let mut loaded = pair.filter.reloaded(case, Generation::new(111 + later));
            let expected = |number: u32| (number + 6 > 11 + later).then(|| 100 + number);
            let found = (0..12).map(|number| loaded.generation(number));
            let found: Vec<_> = found.map(|it| it.map(Generation::get)).collect();
            assert_eq!(found, (0..12).map(expected).collect::<Vec<_>>(), "{case}");
            assert_eq!(loaded.generation(12), Some(Generation::FOREVER), "{case}");
            assert_eq!(loaded.generations().expired, 0, "{case}");
        }
    });
}

/// A shard is swept while items wait, so a sweep must be short.
#[test]
fn a_sweep_of_a_large_shard_has_many_steps() {
    each(|case, mut pair| {
        let shard = ShardId::WHOLE;
        let numbers = (0..300_000).step_by(3);
        let in_shard = |number| KeyHash { shard, ..key_hash(&pair.filter, number) };
        let key_hashes: Vec<_> = numbers.map(in_shard).collect();
        let part = &mut pair.filter.kind;
        part.insert_in(Generation::new(100), &key_hashes).unwrap();
        part.begin_generation(Generation::new(106));
        let expired = |part: &dyn FilterKind| part.gauge().generations().unwrap().expired;
        let (mut steps, mut before) = (0, expired(&**part));
        assert_eq!(before, 100_000, "{case}");
        while part.ages().unwrap().sweep() {
            let after = expired(&**part);
            assert!(before - after <= 60_000, "{case}: {before} and {after}");
            (steps, before) = (steps + 1, after);
        }
        assert!((2..100).contains(&steps) && before == 0, "{case}: {steps}, {before}");
        assert_eq!(part.gauge().generations().unwrap().swept, 100_000, "{case}");
    });
}

/// A crawl whose pages change: each generation has as many new keys.
#[test]
fn a_filter_whose_keys_expire_stays_as_large_as_it_is() {
    each(|case, mut pair| {
        let mut bytes = Vec::new();
        for round in 0..30 {
            pair.run(&Step::Insert(round * 1500, 1500, 0));
            pair.run(&Step::Begin(1));
            bytes.push(pair.filter.fill().bytes);
        }
        assert_eq!(bytes[10], bytes[29], "{case}: {bytes:?}");
    });
}
