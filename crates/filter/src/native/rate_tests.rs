//! Measured properties of the native filter.
//!
//! The rates are measured in batches as in a crawl, with 30 million tests in all. More tests would
//! take much time and show little.

use std::collections::HashSet;

use proptest::prelude::*;
use urlseen_fingerprint::Fingerprint;

use crate::native::Native;
use crate::{
    Blocks, Capacity, ErrorRate, Geometry, KeyHash, SHARDS, Seed, Shards, Sizing, Verdict,
};

/// Returns the `number`-th fingerprint: 20 pseudorandom bytes (SplitMix64), no two alike.
fn fingerprint(number: u64) -> Fingerprint {
    let mix = |number: u64| {
        let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mix(number).to_le_bytes());
    raw[8..16].copy_from_slice(&mix(!number).to_le_bytes());
    Fingerprint::Raw20(raw)
}

fn sizing(capacity: u64, error_rate: f64) -> Sizing {
    Sizing::new(
        Capacity::new(capacity).expect("a capacity"),
        ErrorRate::new(error_rate).expect("an error rate"),
    )
}

/// Builds a filter in which the fingerprints 0 to `keys` are set.
fn filled(native: Native, keys: u64) -> Shards {
    let mut shards = Shards::allocate(native, 1000).expect("memory");
    set(&mut shards, native, 0..keys);
    shards
}

fn set(shards: &mut Shards, native: Native, numbers: std::ops::Range<u64>) {
    let key_hashes = numbers.map(|number| native.key_hash(&fingerprint(number)));
    shards.set_all(&key_hashes.collect::<Vec<_>>());
}

fn tested(shards: &Shards, key_hashes: &[KeyHash]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    shards.test_all(key_hashes, &mut verdicts);
    verdicts
}

/// Returns the elements of `numbers` whose fingerprints the filter reports as seen.
fn seen(shards: &Shards, native: Native, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let mut seen = Vec::new();
    for first in numbers.clone().step_by(1000) {
        let numbers = first..(first + 1000).min(numbers.end);
        let key_hashes = numbers.clone().map(|number| native.key_hash(&fingerprint(number)));
        let all = numbers.zip(tested(shards, &key_hashes.collect::<Vec<_>>()));
        seen.extend(all.filter(|&(_, verdict)| verdict == Verdict::Seen).map(|(number, _)| number));
    }
    seen
}

/// Checks that the number of wrong verdicts in `asked` tests fits the error rate, within three
/// standard deviations of independent tests. `spread` is the relative deviation of the rate itself.
/// Small filters have such a deviation, because their shards and blocks fill differently.
fn assert_rate(wrong: usize, asked: u64, rate: f64, spread: f64, context: &str) {
    let expected = asked as f64 * rate;
    let sigma = (expected + (spread * expected).powi(2)).sqrt();
    let off = (wrong as f64 - expected) / sigma;
    assert!(off.abs() <= 3.0, "{context}: {wrong} wrong, {expected:.1} expected, {off:.2} sigma");
}

#[test]
fn the_error_rate_at_capacity_is_the_computed_one() {
    let capacity = 500_000;
    for (seed, rate, asked) in
        [(1, 1e-2, 500_000), (0xdead_beef, 1e-4, 3_000_000), (20_260_101, 1e-6, 20_000_000)]
    {
        let sizing = sizing(capacity, rate);
        let native = Native::new(Seed::new(seed), sizing.geometry);
        let shards = filled(native, capacity);
        let wrong = seen(&shards, native, capacity..capacity + asked).len();
        let at_capacity = sizing.geometry.error_rate_at(capacity);
        assert_rate(wrong, asked, at_capacity, 0.0, &format!("{rate:e}, seed {seed}"));
    }
}

/// Tests all numbers of blocks for each key, also in filters beyond their capacity. In these cases,
/// a mistake in the model has the largest effect, and the rates can be measured exactly.
#[test]
fn the_error_rate_is_the_computed_one_for_all_numbers_of_blocks_and_fills() {
    for blocks in Blocks::ALL {
        for bits_per_block in [1, 8] {
            let geometry = Geometry::new(blocks, bits_per_block, 8).unwrap();
            let native = Native::new(Seed::new(5), geometry);
            // The first number of keys leaves half of the bits zero. The second one is twice as
            // large.
            let half = geometry.keys_from_ones(geometry.shard_bits() / 2) * SHARDS as u64;
            for keys in [half, 2 * half] {
                let shards = filled(native, keys);
                let asked = 150_000;
                let wrong = seen(&shards, native, keys..keys + asked).len();
                let context = format!("{blocks:?}, {bits_per_block} bits a block, {keys} keys");
                assert_rate(wrong, asked, geometry.error_rate_at(keys), 0.01, &context);
            }
        }
    }
}

#[test]
fn the_number_of_keys_is_estimated_to_one_percent() {
    let capacity = 1_000_000;
    let sizing = sizing(capacity, 1e-6);
    let native = Native::new(Seed::new(11), sizing.geometry);
    let mut shards = Shards::allocate(native, 1000).unwrap();
    let mut set_so_far = 0;
    for percent in [10, 50, 100, 200] {
        let keys = capacity * percent / 100;
        set(&mut shards, native, set_so_far..keys);
        set_so_far = keys;
        let estimate = |ones| sizing.geometry.keys_from_ones(ones);
        let total: u64 = shards.counts().iter().map(|count| estimate(count.ones)).sum();
        assert!((total as f64 / keys as f64 - 1.0).abs() < 0.01, "{percent} %: {total}");
        let mut of_shard = [0u64; SHARDS];
        (0..keys).for_each(|number| {
            of_shard[native.key_hash(&fingerprint(number)).shard().index()] += 1;
        });
        for (shard, count) in shards.counts().iter().enumerate() {
            let off = estimate(count.ones) as f64 / of_shard[shard] as f64 - 1.0;
            assert!(off.abs() < 0.01, "{percent} %, shard {shard}: off by {off}");
        }
    }
}

/// Draws fingerprints of all kinds from a small space, so that many of them occur twice.
fn any_fingerprint() -> impl Strategy<Value = Fingerprint> {
    prop_oneof![
        any::<u8>().prop_map(|byte| Fingerprint::Raw16([byte; 16])),
        any::<u8>().prop_map(|byte| Fingerprint::Raw20([byte; 20])),
        any::<u8>().prop_map(|byte| Fingerprint::Raw32([byte; 32])),
        "[a-c]{0,4}".prop_map(|text| Fingerprint::Text(text.into_bytes().into())),
    ]
}

proptest! {
    // Each case has hundreds of fingerprints.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares with an exact set. A key that was set is seen, for every kind and shard. At this
    /// rate and with so few keys, all other keys are unseen.
    #[test]
    fn keys_that_were_set_are_seen(
        asked in prop::collection::vec(any_fingerprint(), 0..300),
        rate in prop::sample::select(vec![1e-8, 1e-12]),
        seed in any::<u32>(),
    ) {
        let native = Native::new(Seed::new(seed), sizing(1000, rate).geometry);
        let mut shards = Shards::allocate(native, 1000).unwrap();
        let mut exact = HashSet::new();
        for fingerprint in &asked {
            let key_hash = native.key_hash(fingerprint);
            let unseen = exact.insert(fingerprint.clone());
            let verdict = if unseen { Verdict::Unseen } else { Verdict::Seen };
            prop_assert_eq!(tested(&shards, &[key_hash]), [verdict], "{}", fingerprint);
            shards.set_all(&[key_hash]);
            prop_assert_eq!(tested(&shards, &[key_hash]), [Verdict::Seen]);
        }
        for fingerprint in &exact {
            let key_hash = native.key_hash(fingerprint);
            prop_assert_eq!(tested(&shards, &[key_hash]), [Verdict::Seen]);
        }
        let keys = shards.counts().iter().map(|count| count.keys);
        prop_assert_eq!(keys.sum::<u64>(), exact.len() as u64);
    }
}
