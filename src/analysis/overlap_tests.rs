//! Tests of the numbers and their error, on filters that were filled with known keys.

use std::sync::Arc;

use super::*;
use urlseen_filter::{Kind, murmur3_x86_32};
use urlseen_fingerprint::Fingerprint;

const CAPACITY: &str = "2500";
const TRIALS: u32 = 40;

/// Returns a filter of this kind, with another seed in each trial.
fn kind(name: &str, rate: &str, trial: u32) -> Arc<dyn RedisKind> {
    let value = |field: &str| match field {
        "filter.capacity" => Some(CAPACITY.to_owned()),
        "filter.error_rate" => Some(rate.to_owned()),
        "filter.seed" => Some(trial.to_string()),
        "filter.bit" => Some("17".to_owned()),
        "filter.hash_number" => Some("6".to_owned()),
        _ => None,
    };
    name.parse::<Kind>().unwrap().read(&value).unwrap().in_redis().unwrap()
}

/// Returns the strings of a filter with these keys.
fn filled(kind: &dyn RedisKind, trial: u32, keys: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let bytes = |content: Content| usize::try_from(content.max_bytes().unwrap()).unwrap();
    let mut strings: Vec<_> = kind.keys().into_iter().map(|(_, it)| vec![0; bytes(it)]).collect();
    for key in keys {
        let mut raw = [0; 20];
        for (place, word) in (0_u32..).zip(raw.chunks_mut(4)) {
            let text = [trial, key, place].map(u32::to_le_bytes).concat();
            word.copy_from_slice(&murmur3_x86_32(&text, 99).to_le_bytes());
        }
        for position in kind.positions(&Fingerprint::Raw20(raw)).unwrap() {
            let byte = &mut strings[position.string as usize][position.bit as usize / 8];
            *byte |= 0x80 >> (position.bit % 8);
        }
    }
    strings
}

/// Unites a filter with `a` keys and one with `b` keys, of which `common` are the same.
fn united(name: &str, rate: &str, trial: u32, [a, b, common]: [u32; 3]) -> Overlap {
    let (kind, mut totals) = (kind(name, rate, trial), Totals::default());
    let [mut ours, theirs] = [0..a, a - common..a + b - common].map(|it| filled(&*kind, trial, it));
    for ((_, content), (ours, theirs)) in kind.keys().into_iter().zip(ours.iter_mut().zip(&theirs))
    {
        totals.unite(content, ours, theirs);
    }
    assert_eq!(ours, filled(&*kind, trial, 0..a + b - common));
    totals.overlap(Some(&*kind))
}

/// Few and many keys, empty filters and too full ones, and any overlap.
#[test]
fn numbers_are_within_the_error() {
    for (name, rate) in [
        ("native", "1e-3"),
        ("native", "1e-4"),
        ("native", "1e-6"),
        ("pyrebloom", "0.02"),
        ("scrapy-redis-bloomfilter", ""),
    ] {
        for sets in [[1, 0, 0], [6, 4, 1], [2500, 1375, 250], [1250, 1250, 1250], [5000, 0, 0]] {
            let [a, b, common] = sets;
            let truths = [a, b, a + b - common, common].map(f64::from);
            let (mut within, mut bias) = ([0; 4], [0.0; 4]);
            for trial in 0..TRIALS {
                let Overlap { a, b, union, intersection, error } = united(name, rate, trial, sets);
                let case = format!("{name} {rate} {sets:?}: {error}");
                assert!(error <= 0.025 * truths[2].max(1000.0), "{case}");
                for (place, found) in [a, b, union, intersection].into_iter().enumerate() {
                    let wrong = found as f64 - truths[place];
                    within[place] += u32::from(wrong.abs() <= error);
                    bias[place] += wrong / error / f64::from(TRIALS);
                }
            }
            let case = format!("{name} {rate} {sets:?}: {within:?} {bias:?}");
            assert!(within.iter().all(|&it| it * 100 >= TRIALS * 95), "{case}");
            assert!(bias.iter().all(|it| it.abs() < 0.4), "{case}");
        }
    }
}

#[test]
fn counted_numbers_are_exact_and_a_full_filter_has_no_error() {
    let mut totals = Totals::default();
    totals.add([4, 2, 5]);
    totals.add([0, 1, 1]);
    let exact = Overlap { a: 4, b: 3, union: 6, intersection: 1, error: 0.0 };
    assert_eq!(totals.overlap(None), exact);
    let full = united("pyrebloom", "0.02", 0, [40_000, 10, 10]);
    assert!(full.error.is_infinite() && full.intersection <= full.b, "{full:?}");
}
