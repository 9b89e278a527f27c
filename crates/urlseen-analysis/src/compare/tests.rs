//! Tests of estimates and their bounds, on filters that were filled with known keys.

use super::*;
use urlseen_core::filter::Cells;
use urlseen_core::filter::kinds::{PyreBloom, ScrapyRedisBloomFilter};
use urlseen_core::filter::layout::BitStrings;
use urlseen_core::filter::native::Native;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Capacity, ErrorRate, Seed, ShardId, Shards, Sizing};
use urlseen_core::fingerprint::Fingerprint;

/// Numbers of keys in a trial: keys only in A, keys only in B, and common keys.
#[derive(Debug, Clone, Copy)]
struct Sets {
    a: u64,
    b: u64,
    common: u64,
}

/// Returns a fingerprint that is different for each trial and each number.
fn key(trial: u64, number: u64) -> Fingerprint {
    let mut raw = [0; 20];
    for (place, chunk) in raw.chunks_mut(4).enumerate() {
        let mut text = [0; 24];
        text[..8].copy_from_slice(&trial.to_le_bytes());
        text[8..16].copy_from_slice(&number.to_le_bytes());
        text[16] = u8::try_from(place).unwrap();
        chunk.copy_from_slice(&urlseen_core::filter::hash::murmur3_x86_32(&text, 99).to_le_bytes());
    }
    Fingerprint::Raw20(raw)
}

/// Kind of the filters that a trial fills.
enum Filled {
    Native(Sizing),
    Strings(Box<dyn BitStrings>),
    /// Filter with one layer, for 10,000 keys.
    RedisBloom,
}

impl Filled {
    fn totals(&self, trial: u64, sets: Sets) -> Totals {
        let Sets { a, b, common } = sets;
        let all = a + b + common;
        let (in_a, in_b) = (0..a + common, a..all);
        let keys: Vec<Fingerprint> = (0..all).map(|number| key(trial, number)).collect();
        let part = |range: &std::ops::Range<u64>| {
            let index = |at: u64| usize::try_from(at).unwrap();
            &keys[index(range.start)..index(range.end)]
        };
        match self {
            Self::Native(sizing) => native(*sizing, trial, part(&in_a), part(&in_b)),
            Self::RedisBloom => redisbloom(part(&in_a), part(&in_b)),
            Self::Strings(strings) => self::strings(&**strings, part(&in_a), part(&in_b)),
        }
    }
}

fn native(sizing: Sizing, trial: u64, a: &[Fingerprint], b: &[Fingerprint]) -> Totals {
    let seed = Seed::new(u32::try_from(trial).unwrap());
    let native = Native::new(seed, sizing.geometry);
    let filled = |keys: &[Fingerprint]| {
        let mut shards = Shards::allocate(native, 0, 1).unwrap();
        let key_hashes: Vec<_> = keys.iter().map(|key| native.key_hash(key)).collect();
        shards.set_all(&key_hashes);
        shards
    };
    let (a, b) = (filled(a), filled(b));
    let (mut totals, cells) = (Totals::default(), Cells::shard(sizing.geometry));
    for shard in ShardId::all() {
        let mut ones = Ones::default();
        ones.add(a.bytes(shard), b.bytes(shard));
        totals.add(&cells, ones);
    }
    totals
}

fn redisbloom(a: &[Fingerprint], b: &[Fingerprint]) -> Totals {
    let filled = |keys: &[Fingerprint]| {
        let mut filter = Filter::reserve(0.01, 10_000, 0, u64::MAX).unwrap();
        for key in keys {
            filter.add(key.text(&mut [0; 64])).unwrap();
        }
        filter
    };
    let (a, b) = (filled(a), filled(b));
    let (a, b) = (&a.layers()[0], &b.layers()[0]);
    let mut ones = Ones::default();
    ones.add(a.bytes(), b.bytes());
    let mut totals = Totals::default();
    totals.add(&Cells::string(a.reach(), a.hashes().into()), ones);
    totals
}

fn strings(strings: &dyn BitStrings, a: &[Fingerprint], b: &[Fingerprint]) -> Totals {
    let filled = |keys: &[Fingerprint]| {
        let lengths = (0..strings.strings()).map(|number| strings.max_bytes(number));
        let mut filled: Vec<Vec<u8>> =
            lengths.map(|length| vec![0; usize::try_from(length).unwrap()]).collect();
        let mut positions = Vec::new();
        for key in keys {
            positions.clear();
            strings.push_positions(key.to_string().as_bytes(), &mut positions).unwrap();
            for position in &positions {
                let byte = &mut filled[position.string as usize][position.bit as usize / 8];
                *byte |= 0x80 >> (position.bit % 8);
            }
        }
        filled
    };
    let mut totals = Totals::default();
    for (number, (a, b)) in (0..).zip(filled(a).iter().zip(&filled(b))) {
        let mut ones = Ones::default();
        let (bits, crowded) = (strings.bits(number), strings.crowded_bits(number));
        let from = usize::try_from(crowded / 8).unwrap();
        ones.add(&a[from..], &b[from..]);
        totals.add(&Cells::crowded_string(bits, crowded, strings.spread_hashes()), ones);
    }
    totals
}

/// Errors of the estimates in many trials. The unit is the standard deviation that the bounds
/// imply.
#[derive(Default)]
struct Score {
    sum: f64,
    squares: f64,
    within: u32,
    trials: u32,
}

impl Score {
    fn note(&mut self, truth: u64, Interval { value, low, high }: Interval) {
        let truth = truth as f64;
        let deviation = ((high - low) / 2.0 / 1.96).max(0.05);
        let z = (value - truth) / deviation;
        self.sum += z;
        self.squares += z * z;
        self.within += u32::from(low <= truth && truth <= high);
        self.trials += 1;
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.trials)
    }

    fn deviation(&self) -> f64 {
        (self.squares / f64::from(self.trials) - self.mean() * self.mean()).sqrt()
    }

    fn share_within(&self) -> f64 {
        f64::from(self.within) / f64::from(self.trials)
    }
}

const TRIALS: u64 = 60;

/// Fills filters repeatedly with sets of known overlap, and compares the estimates with the true
/// values. The estimates must have no bias. Their standard deviation must be the one that their
/// bounds imply. About 95 % of the true values must lie within the bounds.
#[track_caller]
fn check(name: &str, filled: &Filled, size: u64) {
    let mut all = Score::default();
    for share in [0, 10, 50, 100] {
        let common = size * share / 100;
        let sets = Sets { a: size - common, b: (size - common) / 2, common };
        let mut scores: [Score; 4] = Default::default();
        for trial in 0..TRIALS {
            let overlap = filled.totals(1000 * share + trial, sets).overlap();
            let Overlap { a, b, union, intersection, .. } = overlap;
            let truths = [
                (sets.a + common, a),
                (sets.b + common, b),
                (sets.a + sets.b + common, union),
                (common, intersection),
            ];
            for (score, (truth, interval)) in scores.iter_mut().zip(truths) {
                score.note(truth, interval);
                all.note(truth, interval);
            }
        }
        let what = ["A", "B", "A or B", "A and B"];
        for (what, score) in what.iter().zip(&scores) {
            let (mean, deviation) = (score.mean(), score.deviation());
            let within = score.share_within();
            let said = format!(
                "{name}, {size} keys, {share} % in both, {what}: mean {mean:.2}, deviation \
                 {deviation:.2}, within {within:.2}"
            );
            assert!(within >= 0.85, "{said}");
            // If there are no common keys, the true number is 0, and estimates are never below 0.
            // So their mean is too high.
            if share == 0 && *what == "A and B" {
                continue;
            }
            assert!(mean.abs() < 0.4, "{said}");
            assert!((0.7..1.3).contains(&deviation), "{said}");
        }
    }
    let within = all.share_within();
    assert!((0.93..0.99).contains(&within), "{name}, {size} keys: within {within:.3}");
}

fn sizing(capacity: u64, rate: f64) -> Sizing {
    Sizing::new(Capacity::new(capacity).unwrap(), ErrorRate::new(rate).unwrap())
}

#[test]
fn native_filters_are_estimated_within_their_bounds() {
    for (rate, percents) in [(1e-3, &[20, 200][..]), (1e-6, &[100])] {
        let filled = Filled::Native(sizing(10_000, rate));
        for percent in percents {
            check(&format!("native at {rate}"), &filled, 100 * percent);
        }
    }
}

#[test]
fn strings_of_other_projects_are_estimated_within_their_bounds() {
    let pyrebloom = Filled::Strings(Box::new(PyreBloom::new(2500, 1e-3).unwrap()));
    for size in [500, 2500, 7500] {
        check("pyrebloom", &pyrebloom, size);
    }
    let unrounded = Filled::Strings(Box::new(PyreBloom::unrounded(1500, 0.02).unwrap()));
    check("luw2007-bloomfilter", &unrounded, 1500);
}

#[test]
fn filters_of_redisbloom_are_estimated_within_their_bounds() {
    check("redisbloom", &Filled::RedisBloom, 8000);
}

/// The hashes of this kind are not evenly spread, so the bounds do not hold. If the crowded bits at
/// the start are left out, the estimates are still close to the true values.
#[test]
fn filters_with_uneven_hashes_are_estimated_within_one_percent() {
    let theirs = ScrapyRedisBloomFilter::new(17, 6).unwrap();
    let theirs = Filled::Strings(Box::new(theirs));
    for (trial, size) in [(1, 1000), (2, 5000), (3, 15_000)] {
        let sets = Sets { a: size, b: size, common: 0 };
        let Overlap { a, b, union, intersection, .. } = theirs.totals(trial, sets).overlap();
        let near = |truth: u64, Interval { value, .. }: Interval| {
            assert!((value - truth as f64).abs() < 0.01 * size as f64 + 10.0, "{truth}: {value}");
        };
        near(size, a);
        near(size, b);
        near(2 * size, union);
        near(0, intersection);
    }
}

/// Without blocks, the formula of Swamidass and Baldi gives the same estimates. With blocks, its
/// estimates are too low.
#[test]
fn the_textbook_formula_is_right_only_without_blocks() {
    let textbook = |bits: f64, k: f64, ones: f64| -(bits / k) * (-(ones / bits)).ln_1p();
    let plain = Cells::string(1 << 20, 7.0);
    assert!((plain.keys(400_000) / textbook(f64::from(1 << 20), 7.0, 4e5) - 1.0).abs() < 1e-5);
    let geometry = sizing(1_000_000, 1e-6).geometry;
    let (cells, bits) = (Cells::shard(geometry), geometry.shard_bits() as f64);
    let ones = geometry.shard_bits() / 2;
    let ratio = textbook(bits, geometry.k().into(), ones as f64) / cells.keys(ones);
    let low = f64::from(geometry.bits_per_block() - 1) / 1024.0;
    assert!((1.0 - ratio - low).abs() < 0.1 * low, "{ratio}");
    assert!(cells.keys(ones).round() - geometry.keys_from_ones(ones) as f64 <= 1.0);
}

#[test]
fn ones_are_counted_in_pages_of_any_length() {
    let mut random = 1_u64;
    for (first, second) in [(0, 0), (1, 0), (7, 9), (16, 24), (100, 33)] {
        let mut bytes = |length: usize| -> Vec<u8> {
            (0..length)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    random.to_be_bytes()[0]
                })
                .collect()
        };
        let (a, mut b) = (bytes(first), bytes(second));
        let mut ones = Ones::default();
        ones.add(&a, &b);
        let count = |bytes: &[u8]| bytes.iter().map(|it| u64::from(it.count_ones())).sum::<u64>();
        let (in_a, in_b) = (count(&a), count(&b));
        b.resize(b.len().max(a.len()), 0);
        a.iter().zip(&mut b).for_each(|(a, b)| *b |= a);
        assert_eq!(ones, Ones { a: in_a, b: in_b, union: count(&b) });
        assert_eq!(ones.intersection(), in_a + in_b - count(&b));
    }
}

#[test]
fn shares_follow_from_the_sizes() {
    let filled = Filled::Native(sizing(20_000, 1e-3));
    let overlap = filled.totals(7, Sets { a: 15_000, b: 0, common: 5000 }).overlap();
    let within = |share: Option<Interval>, truth: f64| {
        let Interval { value, low, high } = share.unwrap();
        assert!(low <= truth && truth <= high && high - low < 0.1, "{low} {value} {high}");
    };
    within(overlap.a_in_b, 0.25);
    within(overlap.b_in_a, 1.0);
    within(overlap.jaccard, 0.25);
    let empty = Totals::default().overlap();
    assert_eq!((empty.jaccard, empty.a.high), (None, 0.0));
    let mut exact = Totals::default();
    exact.add_exact(4, 2, 1);
    let exact = exact.overlap();
    assert_eq!((exact.union.low, exact.union.high), (5.0, 5.0));
    assert!((exact.b_in_a.unwrap().value - 0.5).abs() < 1e-12);
}

#[test]
fn an_overlap_with_a_full_part_is_marked_as_full() {
    let cells = Cells::string(1 << 10, 4.0);
    let mut totals = Totals::default();
    totals.add(&cells, Ones { a: 500, b: 1020, union: 1020 });
    assert!(totals.overlap().is_full);
}

/// The bounds also hold in extreme cases: few keys, filters that are empty or far too full, one
/// filter contained in another, equal filters, and a single common key.
#[test]
fn bounds_hold_in_extreme_cases() {
    let kinds = [
        ("native", Filled::Native(sizing(2500, 1e-3))),
        ("pyrebloom", Filled::Strings(Box::new(PyreBloom::new(2500, 1e-3).unwrap()))),
    ];
    let sets = |a, b, common| Sets { a, b, common };
    for (name, filled) in &kinds {
        for (number, case, sets) in [
            (1, "one key and none", sets(1, 0, 0)),
            (2, "a few keys", sets(5, 3, 1)),
            (3, "a subset", sets(2250, 0, 250)),
            (4, "equal", sets(0, 0, 1250)),
            (5, "one key in common", sets(2500, 2500, 1)),
            (6, "one key of many", sets(5000, 0, 1)),
            (7, "five times too full", sets(5000, 5000, 7500)),
        ] {
            let mut scores: [Score; 4] = Default::default();
            for trial in 0..TRIALS {
                let overlap = filled.totals(10_000 * number + trial, sets).overlap();
                assert_is_sound(&overlap);
                let Overlap { a, b, union, intersection, .. } = overlap;
                let Sets { common, .. } = sets;
                let truths = [
                    (sets.a + common, a),
                    (sets.b + common, b),
                    (sets.a + sets.b + common, union),
                    (common, intersection),
                ];
                for (score, (truth, interval)) in scores.iter_mut().zip(truths) {
                    score.note(truth, interval);
                }
            }
            let within = scores.map(|score| score.share_within());
            assert!(within.iter().all(|&it| it >= 0.85), "{name}, {case}: {within:?}");
        }
    }
}

/// Checks that no value is NaN, infinite or negative, no share is above 1, and estimates are within
/// their bounds.
#[track_caller]
fn assert_is_sound(overlap: &Overlap) {
    let Overlap { a, b, union, intersection, a_in_b, b_in_a, jaccard, .. } = *overlap;
    let sizes = [a, b, union, intersection];
    let shares = [a_in_b, b_in_a, jaccard].into_iter().flatten();
    for (each, most) in sizes.map(|it| (it, f64::MAX)).into_iter().chain(shares.map(|it| (it, 1.0)))
    {
        let Interval { value, low, high } = each;
        let is_sound = 0.0 <= low && low <= value && value <= high && high <= most;
        assert!(is_sound, "{each:?} in {overlap:?}");
    }
}

proptest::proptest! {
    /// Draws arbitrary valid counts of 1 bits, for 1 to 19 parts.
    #[test]
    fn any_counts_give_finite_estimates_within_their_bounds(
        power in 0..45_u32,
        draws in 1..1100_u32,
        shares in proptest::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64, 0.0..=1.0_f64), 1..20),
        geometry in proptest::option::of((1..10_000_000_000_u64, 1..12_i32)),
    ) {
        let cells = match geometry {
            Some((capacity, rate)) => Cells::shard(sizing(capacity, 10_f64.powi(-rate)).geometry),
            None => Cells::string(1 << power, draws.into()),
        };
        // The result lies between 0 and the argument `of`.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let part = |share: f64, of: u64| (share * of as f64) as u64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits = cells.bits() as u64;
        let mut totals = Totals::default();
        for (a, b, more) in shares {
            let (a, b) = (part(a, bits), part(b, bits));
            let union = a.max(b) + part(more, (a + b).min(bits) - a.max(b));
            totals.add(&cells, Ones { a, b, union });
        }
        assert_is_sound(&totals.overlap());
    }
}
