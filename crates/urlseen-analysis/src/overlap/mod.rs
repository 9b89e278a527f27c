//! Overlap of two filters: the numbers of keys in A, in B, in both together and in each of them.
//!
//! The OR of the bits of A and B equals a filter to which the keys of both were added. So the bits
//! give three numbers, and the fourth is |A| + |B| - |A or B| (inclusion and exclusion).
//!
//! One error holds for all four. By the covariances of [`Cells`], the number in A or B has the
//! largest variance of the four.

#[cfg(test)]
mod tests;

use serde::Serialize;
use urlseen_core::filter::Cells;

/// Distance from the mean, in standard deviations, within which 95 % of a normal distribution lie.
const WITHIN_95: f64 = 1.959_964;

/// Part of a number by which it can be wrong if the hashes of a kind are not evenly spread.
const UNEVEN: f64 = 0.01;

/// Counts of 1 bits: in filter A, in filter B, and in the OR of both filters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Ones {
    a: u64,
    b: u64,
    union: u64,
}

impl Ones {
    /// Counts the bits of a page of A, and of the page of B at the same position. Both have the
    /// same length.
    pub fn add(&mut self, a: &[u8], b: &[u8]) {
        for (a, b) in words(a).zip(words(b)) {
            self.a += u64::from(a.count_ones());
            self.b += u64::from(b.count_ones());
            self.union += u64::from((a | b).count_ones());
        }
    }
}

/// Iterates over the words of a page. The last one is filled up with zeros.
fn words(page: &[u8]) -> impl Iterator<Item = u64> {
    let (words, rest) = page.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().copied().chain([last]).map(u64::from_ne_bytes)
}

/// Sums of the numbers for all parts of two filters, such as their shards.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Numbers of keys in A, in B, and in their union.
    keys: [f64; 3],
    /// Variance of the number in the union.
    variance: f64,
    is_uneven: bool,
    is_full: bool,
}

impl Totals {
    /// Adds the numbers of one part, estimated from its bits. `cells` is the distribution of the
    /// bits that keys choose.
    pub fn add(&mut self, cells: &Cells, ones: Ones) {
        let [a, b, union] = [ones.a, ones.b, ones.union].map(|ones| cells.keys(ones));
        for (sum, keys) in self.keys.iter_mut().zip([a, b, union]) {
            *sum += keys;
        }
        // For impossible numbers, the variance would have no meaning.
        self.variance += cells.variance(union.clamp(a.max(b), a + b));
        self.is_uneven |= cells.crowded_bytes() > 0;
        self.is_full |= cells.is_full(ones.union);
    }

    /// Adds a part for which the numbers of keys in A, in B and in both are known.
    pub fn add_exact(&mut self, a: u64, b: u64, common: u64) {
        for (sum, keys) in self.keys.iter_mut().zip([a, b, a + b - common]) {
            *sum += keys as f64;
        }
    }

    /// Returns the four numbers, with their error.
    pub fn overlap(&self) -> Overlap {
        let [a, b, union] = self.keys;
        let intersection = (a + b - union).clamp(0.0, a.min(b));
        let uneven = if self.is_uneven { UNEVEN * union } else { 0.0 };
        let error = WITHIN_95 * self.variance.sqrt() + uneven;
        // The numbers are rounded.
        let error = if error > 0.0 { (error + 0.5).ceil() } else { 0.0 };
        let [a, b, union, intersection] = [a, b, union, intersection].map(f64::round);
        Overlap { a, b, union, intersection, error, is_full: self.is_full }
    }
}

/// Numbers of keys in two filters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlap {
    /// Number of keys in A, whether they are in B or not.
    pub a: f64,
    /// Number of keys in B, whether they are in A or not.
    pub b: f64,
    /// Number of keys in A, in B or in both.
    pub union: f64,
    /// Number of keys that A and B have in common.
    pub intersection: f64,
    /// Error of each number in at least 95 of 100 cases; 0 if the numbers are exact.
    pub error: f64,
    /// True if a part of a filter has too few zeros. The numbers are then too low.
    pub is_full: bool,
}
