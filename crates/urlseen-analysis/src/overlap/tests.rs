//! Tests of estimates and their error, on filters that were filled with known keys.

use super::*;
use urlseen_core::filter::Cells;
use urlseen_core::filter::kinds::{PyreBloom, ScrapyRedisBloomFilter};
use urlseen_core::filter::layout::BitStrings;
use urlseen_core::filter::native::Native;
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

const TRIALS: u64 = 60;

/// Fills filters repeatedly with sets, and compares the four numbers with the true ones. Returns
/// how many of them are within the error. Estimates must have no bias.
#[track_caller]
fn check(name: &str, filled: &Filled, sets: Sets) -> u64 {
    let Sets { a, b, common } = sets;
    let truths = [a + common, b + common, a + b + common, common].map(|it| it as f64);
    let (mut within, mut bias) = ([0_u64; 4], [0.0; 4]);
    for trial in 0..TRIALS {
        let Overlap { a, b, union, intersection, error, .. } = filled.totals(trial, sets).overlap();
        for (place, found) in [a, b, union, intersection].into_iter().enumerate() {
            within[place] += u64::from((found - truths[place]).abs() <= error);
            bias[place] += (found - truths[place]) / error / TRIALS as f64;
        }
    }
    // With so few trials, a share of 85 % can be chance.
    assert!(within.iter().all(|&it| it * 100 >= TRIALS * 85), "{name}, {sets:?}: {within:?}");
    assert!(bias[..3].iter().all(|it| it.abs() < 0.3), "{name}, {sets:?}: {bias:?}");
    within.iter().sum()
}

fn sizing(capacity: u64, rate: f64) -> Sizing {
    Sizing::new(Capacity::new(capacity).unwrap(), ErrorRate::new(rate).unwrap())
}

/// Few and many keys, empty filters and far too full ones, and any overlap.
#[test]
fn numbers_are_within_the_error() {
    let sets = |a, b, common| Sets { a, b, common };
    let pyrebloom = |capacity, rate| Box::new(PyreBloom::new(capacity, rate).unwrap());
    let kinds = [
        ("native", Filled::Native(sizing(2500, 1e-3))),
        ("native at 1e-6", Filled::Native(sizing(2500, 1e-6))),
        ("pyrebloom", Filled::Strings(pyrebloom(2500, 1e-3))),
        ("luw2007", Filled::Strings(Box::new(PyreBloom::unrounded(1500, 0.02).unwrap()))),
    ];
    for (name, filled) in &kinds {
        let all = [
            sets(1, 0, 0),
            sets(5, 3, 1),
            sets(2250, 1125, 250),
            sets(0, 0, 1250),
            sets(2500, 2500, 1),
            sets(5000, 0, 1),
            sets(2000, 1000, 2000),
        ];
        let within: u64 = all.iter().map(|&sets| check(name, filled, sets)).sum();
        let numbers = 4 * TRIALS * all.len() as u64;
        assert!(within * 100 >= numbers * 95, "{name}: {within} of {numbers}");
    }
}

/// The first bits of this kind are crowded and are left out. The error has a further percent.
#[test]
fn filters_with_uneven_hashes_are_estimated_within_the_error() {
    let theirs = ScrapyRedisBloomFilter::new(17, 6).unwrap();
    let theirs = Filled::Strings(Box::new(theirs));
    for (trial, size) in [(1, 1000), (2, 5000), (3, 15_000)] {
        let sets = Sets { a: size, b: size, common: 0 };
        let overlap = theirs.totals(trial, sets).overlap();
        let size = size as f64;
        let Overlap { a, b, union, intersection, error, .. } = overlap;
        assert!(error < 0.03 * size + 20.0, "{overlap:?}");
        for (found, truth) in [(a, size), (b, size), (union, 2.0 * size), (intersection, 0.0)] {
            assert!((found - truth).abs() <= error, "{overlap:?}");
        }
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
    for length in [0, 1, 7, 8, 16, 33] {
        let (a, b): (Vec<u8>, Vec<u8>) =
            (0..length).map(|it: u8| (it.wrapping_mul(37), it.wrapping_mul(91))).unzip();
        let mut ones = Ones::default();
        ones.add(&a, &b);
        let count = |bytes: &[u8]| bytes.iter().map(|it| u64::from(it.count_ones())).sum::<u64>();
        let union: Vec<_> = a.iter().zip(&b).map(|(a, b)| a | b).collect();
        assert_eq!(ones, Ones { a: count(&a), b: count(&b), union: count(&union) });
    }
}

#[test]
fn exact_numbers_have_no_error() {
    let mut exact = Totals::default();
    exact.add_exact(4, 2, 1);
    let Overlap { a, b, union, intersection, error, .. } = exact.overlap();
    let numbers = [a, b, union, intersection, error].map(|number| number.to_string());
    assert_eq!(numbers, ["4", "2", "5", "1", "0"]);
}

#[test]
fn an_overlap_with_a_full_part_is_marked_as_full() {
    let cells = Cells::string(1 << 10, 4.0);
    let mut totals = Totals::default();
    totals.add(&cells, Ones { a: 500, b: 1020, union: 1020 });
    assert!(totals.overlap().is_full);
}

proptest::proptest! {
    /// Draws arbitrary valid counts of 1 bits, for 1 to 19 parts.
    #[test]
    fn any_counts_give_possible_numbers(
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
        let overlap = totals.overlap();
        let Overlap { a, b, union, intersection, error, .. } = overlap;
        let numbers = [a, b, union, intersection, error];
        let are_possible = numbers.iter().all(|it| (0.0..f64::MAX).contains(it));
        proptest::prop_assert!(are_possible, "{:?}", overlap);
        proptest::prop_assert!(intersection <= a.min(b), "{:?}", overlap);
    }
}
