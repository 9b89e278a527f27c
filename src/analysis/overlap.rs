//! Overlap of two filters: the numbers of keys in A, in B, in both together and in each of them.
//!
//! The OR of the bits of two Bloom filters of one spec equals a filter to which the keys of both
//! were added. So the bits give three numbers, and the fourth is |A| + |B| - |A or B| (inclusion
//! and exclusion).
//!
//! With k hashes and m bits of which the share z is 0, the variance of an estimated number of keys
//! is m (1/z - 1 + ln z) / k^2. No estimate of the four has a larger variance than that of A or B,
//! so one error holds for all.

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;

use serde::Serialize;
use urlseen_filter::RedisKind;
use urlseen_filter::redis_kind::{Content, KeyLook};

/// Bound of an error, in standard deviations of the formula above. Within 1.96 of them lie 95 % of
/// a normal distribution. The factor is larger because the keys of a native filter share blocks,
/// which at most doubles the variance.
const BOUND: f64 = 2.8;

/// Part of a number by which it can be wrong if the hashes of a kind are not evenly spread.
const UNEVEN: f64 = 0.01;

/// Sums for all parts of two filters: their shards, or their strings in Redis.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Counted keys in A, in B, and in their union.
    keys: [u64; 3],
    /// Fill of each string of A, of B, and of their union.
    looks: [Vec<KeyLook>; 3],
    /// Variance of the estimate of the union, multiplied by k^2. Infinite if a string is full.
    variance: f64,
}

impl Totals {
    /// Adds the numbers of keys of a part that stores keys: in A, in B, and in their union.
    pub(crate) fn add(&mut self, keys: [u64; 3]) {
        for (sum, keys) in self.keys.iter_mut().zip(keys) {
            *sum += keys;
        }
    }

    /// Counts the bits of a string of A and of B that are 1, and sets the bits of B in A.
    /// A string without bytes is empty.
    pub(crate) fn unite(&mut self, content: Content, a: &mut Vec<u8>, b: &[u8]) {
        let Content::Bits { bits, .. } = content else { return };
        let crowded = content.crowded().unwrap_or(0);
        let bits = (bits - crowded) as f64;
        let ones = |bytes: &[u8]| -> f64 {
            let counted = bytes.iter().skip((crowded / 8) as usize);
            counted.map(|byte| u64::from(byte.count_ones())).sum::<u64>() as f64
        };
        let [in_a, in_b] = [ones(a), ones(b)];
        a.resize(a.len().max(b.len()), 0);
        for (a, b) in a.iter_mut().zip(b) {
            *a |= b;
        }
        let union = ones(a);
        for (looks, ones) in self.looks.iter_mut().zip([in_a, in_b, union]) {
            looks.push(KeyLook { size: 0, fill: ones / bits });
        }
        let zeros = (bits - union) / bits;
        let is_full = bits - union < 16.0;
        let variance = bits * (1.0 / zeros - 1.0 + zeros.ln()).max(0.0);
        self.variance += if is_full { f64::INFINITY } else { variance };
    }

    /// Returns the four numbers, with their error. `kind` has the strings of a Bloom filter.
    pub(crate) fn overlap(&self, kind: Option<&dyn RedisKind>) -> Overlap {
        let (mut keys, mut error) = (self.keys, 0.0);
        if let Some(kind) = kind {
            keys = self.looks.each_ref().map(|looks| kind.estimate(looks).keys);
            let variance = self.variance / f64::from(kind.outlook(0).hashes).powi(2);
            // The number of each string is rounded, which adds at most a quarter.
            let variance = variance + variance.min(self.looks[0].len() as f64 / 4.0);
            let is_uneven = kind.keys().iter().any(|(_, content)| content.crowded() > Some(0));
            let uneven = if is_uneven { UNEVEN } else { 0.0 };
            error = (BOUND * variance.sqrt() + uneven * keys[2] as f64).ceil();
        }
        let [a, b, union] = keys;
        let intersection = (a + b).saturating_sub(union).min(a).min(b);
        Overlap { a, b, union, intersection, error }
    }
}

/// Numbers of keys in two filters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Overlap {
    /// Number of keys in A, whether they are in B or not.
    pub(crate) a: u64,
    /// Number of keys in B, whether they are in A or not.
    pub(crate) b: u64,
    /// Number of keys in A, in B or in both.
    pub(crate) union: u64,
    /// Number of keys that A and B have in common.
    pub(crate) intersection: u64,
    /// Error of each number in at least 95 of 100 cases; 0 if the numbers are exact. Infinite if
    /// too few bits of the union are 0: the numbers are then too low.
    pub(crate) error: f64,
}
