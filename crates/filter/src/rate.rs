//! True error rate of a filter whose keys have their bits in a few blocks.
//!
//! The textbook formula, (1 − e^(−kn/m))^k, assumes that all bits are equally likely to be set. In
//! fact, keys are spread unevenly over shards and blocks. A block with too many keys errs far more
//! often, and blocks with few keys do not make up for that (Putze, Sanders and Singler, "Cache-,
//! hash- and space-efficient Bloom filters", 2007). So this module computes the rate from the steps
//! by which keys choose their bits:
//!
//! 1. The number of keys in a shard is Binomial(n, 1/256), for n keys in the filter. All parts of a
//!    shard have the same keys.
//! 2. The number of keys in a block is Binomial(N, 1/B), for N keys in the shard and B blocks in a
//!    part. Keys choose their blocks independently in each part.
//! 3. An unseen key draws g bits of a block, with replacement. The j keys of the block have drawn
//!    j·g bits in the same way, and set them. The chance that all bits of the unseen key are set
//!    comes from a Markov chain. Its state is the number of distinct bits of the unseen key that
//!    are not set yet ([`BlockRate`]).
//! 4. The filter reports an unseen key as seen if all L blocks of the key have its bits. The chance
//!    is the product over the parts.

use std::sync::OnceLock;

use super::geometry::BLOCK_BITS;
use super::number::whole;
use super::{Geometry, SHARDS};

/// Chance that a block has all the bits of an unseen key, for each number of keys in the block.
#[derive(Debug, Clone)]
pub(super) struct BlockRate {
    by_keys: Vec<f64>,
}

impl BlockRate {
    /// Returns the chances for keys that draw `bits` bits of a block each, with replacement. Only
    /// the first call for a number of bits computes them.
    pub(super) fn of(bits: u8) -> &'static Self {
        static KNOWN: [OnceLock<BlockRate>; 256] = [const { OnceLock::new() }; 256];
        let bits = usize::from(bits);
        KNOWN[bits].get_or_init(|| Self::computed(bits))
    }

    fn computed(bits: usize) -> Self {
        // `missing[s]`: the chance that s distinct bits of the unseen key are not set yet.
        let mut missing = vec![0.0; bits + 1];
        missing[0] = 1.0;
        for _ in 0..bits {
            for s in (1..=bits).rev() {
                missing[s] = missing[s] * share(s) + missing[s - 1] * (1.0 - share(s - 1));
            }
            missing[0] = 0.0;
        }
        let mut by_keys = vec![0.0];
        // A chance within 1e-9 of 1 counts as 1.
        while missing[0] < 1.0 - 1e-9 {
            for _ in 0..bits {
                for s in 1..=bits {
                    let hit = missing[s] * share(s);
                    missing[s] -= hit;
                    missing[s - 1] += hit;
                }
            }
            by_keys.push(missing[0]);
        }
        Self { by_keys }
    }

    /// Returns the mean chance over a part of `blocks` blocks with `keys` keys.
    pub(super) fn of_part(&self, keys: u64, blocks: u32) -> f64 {
        over_binomial(keys, u64::from(blocks), |in_block| {
            usize::try_from(in_block).ok().and_then(|j| self.by_keys.get(j)).copied().unwrap_or(1.0)
        })
    }

    /// Returns the error rate of a shard with `keys` keys.
    fn of_shard(&self, geometry: Geometry, keys: u64) -> f64 {
        let part = self.of_part(keys, geometry.blocks_per_part);
        part.powi(geometry.blocks.get().cast_signed())
    }

    /// Returns the error rate of a filter with `keys` evenly spread keys.
    pub(super) fn of_filter(&self, geometry: Geometry, keys: u64) -> f64 {
        over_binomial(keys, SHARDS as u64, |in_shard| self.of_shard(geometry, in_shard))
    }
}

/// Returns a number of bits as a share of all bits in a block.
fn share(bits: usize) -> f64 {
    bits as f64 / f64::from(BLOCK_BITS)
}

impl Geometry {
    /// Returns the error rate of a filter with `keys` evenly spread keys: the share of unseen keys
    /// that it reports as seen. Takes up to a millisecond.
    pub(crate) fn error_rate_at(&self, keys: u64) -> f64 {
        BlockRate::of(self.bits_per_block).of_filter(*self, keys)
    }

    /// Returns the error rate of a filter whose shards have these numbers of keys. Unseen keys are
    /// evenly spread over the shards. Takes up to a millisecond.
    pub(crate) fn error_rate_of(&self, keys: &[u64; SHARDS]) -> f64 {
        let block = BlockRate::of(self.bits_per_block);
        keys.iter().map(|&keys| block.of_shard(*self, keys)).sum::<f64>() / SHARDS as f64
    }

    /// Estimates the number of keys in a shard with `ones` set bits. The error is within 1 % if the
    /// shard has some thousands of keys and is far from full. For a full shard, returns the number
    /// of keys that sets all bits except one.
    pub fn keys_from_ones(&self, ones: u64) -> u64 {
        let bits = self.shard_bits() as f64;
        let zeros = (bits - ones as f64).max(1.0);
        // A key does not set a bit if it chose another block of the part, or if all its draws miss
        // the bit.
        let draws = i32::from(self.bits_per_block);
        let misses = (1.0 - 1.0 / f64::from(BLOCK_BITS)).powi(draws);
        let set = (1.0 - misses) / f64::from(self.blocks_per_part);
        whole(((zeros / bits).ln() / (-set).ln_1p()).round())
    }
}

/// Minimum mean for which the normal distribution replaces the binomial distribution. At such a
/// mean, the skew of the binomial distribution, 1/σ, is below 0.004. The skew changes an error rate
/// by less than one part in a thousand.
const NORMAL_FROM: f64 = 1e5;

/// Returns the mean of `f(count)`. Each of `trials` trials falls into one of `parts` equal parts,
/// and `count` is the number of trials in the first part. `f` must be smooth, with values from 0 to
/// 1.
///
/// The weights of the terms are computed by recurrence from the mode outwards, and divided by their
/// sum. So no number overflows, and no factorial is needed. Only terms with a distance
/// of σ/3 between them are summed. For a bell curve, this changes the result by less than a
/// rounding error.
pub(super) fn over_binomial(trials: u64, parts: u64, f: impl Fn(u64) -> f64) -> f64 {
    if parts == 1 {
        return f(trials);
    }
    let chance = 1.0 / parts as f64;
    let mean = trials as f64 * chance;
    let sigma = (mean * (1.0 - chance)).sqrt();
    if mean > NORMAL_FROM {
        return over_normal(mean, sigma, f);
    }
    let (mode, stride) = (whole(mean), whole(sigma / 3.0).max(1));
    // Terms whose weight is below this share of the mode's weight do not matter for error rates of
    // 1e-12 and more.
    let negligible = 1e-20;
    let odds = 1.0 / (parts - 1) as f64;
    let (mut sum, mut weights) = (f(mode), 1.0);

    for (end, is_upward) in [(trials, true), (0, false)] {
        let (mut weight, mut count) = (1.0, mode);
        while weight > negligible && count != end {
            if is_upward {
                weight *= (trials - count) as f64 / (count + 1) as f64 * odds;
                count += 1;
            } else {
                weight *= count as f64 / ((trials - count + 1) as f64 * odds);
                count -= 1;
            }
            if count.abs_diff(mode).is_multiple_of(stride) {
                sum += weight * f(count);
                weights += weight;
            }
        }
    }
    sum / weights
}

/// Returns the mean of `f(count)`. The mean of the count itself is large, so the count has nearly a
/// normal distribution.
fn over_normal(mean: f64, sigma: f64, f: impl Fn(u64) -> f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in -30..=30 {
        let z = f64::from(step) / 3.0;
        let weight = (-0.5 * z * z).exp();
        // The count is positive, because the mean is far more than ten sigma.
        sum += weight * f(whole((mean + z * sigma).round()));
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::super::Blocks;
    use super::*;

    #[test]
    fn one_bit_a_block_has_a_closed_form() {
        let block = BlockRate::of(1);
        for keys in [0, 1, 2, 100, 1000] {
            let want = 1.0 - (511.0f64 / 512.0).powi(keys);
            assert!((block.of_part(keys.unsigned_abs().into(), 1) - want).abs() < 1e-12, "{keys}");
        }
    }

    #[test]
    fn two_bits_after_one_key_have_a_closed_form() {
        // The one key drew the same bit twice with chance 1/512, or else two bits. The chance that
        // two draws of an unseen key hit only these bits is (1/512)² or (2/512)².
        let one: f64 = 1.0 / 512.0;
        let want = one * one.powi(2) + (1.0 - one) * (2.0 * one).powi(2);
        assert!((BlockRate::of(2).of_part(1, 1) / want - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_empty_filter_is_never_wrong_and_a_flooded_one_always() {
        for blocks in Blocks::ALL {
            let geometry = Geometry::new(blocks, 5, 10).unwrap();
            assert!(geometry.error_rate_at(0) == 0.0);
            assert!(geometry.error_rate_at(1_000_000_000_000) > 1.0 - 1e-8);
            assert!(geometry.error_rate_of(&[0; SHARDS]) == 0.0);
        }
    }

    #[test]
    fn even_shards_are_a_little_better_than_those_that_vary() {
        let geometry = Geometry::new(Blocks::Two, 12, 100).unwrap();
        let (even, varied) =
            (geometry.error_rate_of(&[2000; SHARDS]), geometry.error_rate_at(512_000));
        assert!(even < varied && varied < 1.2 * even, "{even} {varied}");
    }

    #[test]
    fn a_full_shard_is_still_estimated() {
        let geometry = Geometry::new(Blocks::Four, 6, 7).unwrap();
        assert_eq!(geometry.keys_from_ones(0), 0);
        let full = geometry.keys_from_ones(geometry.shard_bits());
        assert_eq!(full, geometry.keys_from_ones(geometry.shard_bits() - 1));
    }

    /// Compares each mean of `1 - e^(-count t)` with a closed form. The closed form follows from
    /// the generating function of the binomial distribution: `(1 - q + q e^(-t))^trials`.
    #[test]
    fn means_are_those_of_the_generating_function() {
        for trials in [0, 1, 2, 7, 255, 256, 5_000, 1_000_000, 20_000_000, 30_000_000_000] {
            for parts in [1, 2, 7, 256] {
                let chance = 1.0 / parts as f64;
                let t = 1.0 / (1.0 + trials as f64 * chance);
                let got = over_binomial(trials, parts, |count| (-(count as f64) * t).exp());
                let want = (trials as f64 * (chance * (-t).exp_m1()).ln_1p()).exp();
                let allowed = if trials as f64 * chance > NORMAL_FROM { 1e-6 } else { 1e-9 };
                assert!((got / want - 1.0).abs() < allowed, "{trials}/{parts}: {got} {want}");
            }
        }
    }
}
