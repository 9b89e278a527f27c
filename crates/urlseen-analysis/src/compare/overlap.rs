//! Sizes and overlap of two filters, computed with bounds from the counts of their bits.

use serde::Serialize;

use super::Ones;
use urlseen_core::filter::Cells;

/// Distance from the mean, in standard deviations, within which 95 % of a normal distribution lie.
const WITHIN_95: f64 = 1.959_964;

/// Estimate, with bounds that contain the true value in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Most likely value of the number.
    pub value: f64,
    /// Lower bound of the value.
    pub low: f64,
    /// Upper bound of the value.
    pub high: f64,
}

impl Interval {
    fn new(value: f64, variance: f64, most: f64) -> Self {
        let reach = WITHIN_95 * variance.max(0.0).sqrt();
        let within = |number: f64| number.clamp(0.0, most);
        Self { value: within(value), low: within(value - reach), high: within(value + reach) }
    }

    /// Returns the interval in whole numbers, with the bounds rounded outwards.
    fn whole(self) -> Self {
        Self { value: self.value.round(), low: self.low.floor(), high: self.high.ceil() }
    }
}

/// Estimated numbers of keys in two filters A and B, and estimated shares of common keys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlap {
    /// Estimated number of keys in A.
    pub a: Interval,
    /// Estimated number of keys in B.
    pub b: Interval,
    /// Estimated number of keys in A, in B or in both.
    pub union: Interval,
    /// Estimated number of keys that A and B have in common.
    pub intersection: Interval,
    /// Share of the keys of A that are in B; `None` if A is empty.
    pub a_in_b: Option<Interval>,
    /// Share of the keys of B that are in A; `None` if B is empty.
    pub b_in_a: Option<Interval>,
    /// Jaccard index: the intersection divided by the union.
    pub jaccard: Option<Interval>,
    /// True if a part of a filter is so full that it carries no information. The sizes are then
    /// lower bounds.
    pub is_full: bool,
}

/// Sums of the estimates for all parts of two filters, such as their shards.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Estimated numbers of keys in A, in B, and in their union.
    keys: [f64; 3],
    /// Variances of the three estimates in `keys`.
    variances: [f64; 3],
    /// Covariance of the estimates of A and of B.
    common: f64,
    is_full: bool,
}

impl Totals {
    /// Adds the counts for one part of both filters. `cells` is the distribution of the bits that
    /// keys choose.
    pub fn add(&mut self, cells: &Cells, ones: Ones) {
        let [a, b, union] = [ones.a, ones.b, ones.union].map(|ones| cells.keys(ones));
        for (sum, keys) in self.keys.iter_mut().zip([a, b, union]) {
            *sum += keys;
        }
        // The estimate is limited to possible values: for impossible values, the variances would
        // have no meaning.
        let common = (a + b - union).clamp(0.0, a.min(b));
        for (sum, keys) in self.variances.iter_mut().zip([a, b, a + b - common]) {
            *sum += cells.covariance(keys);
        }
        self.common += cells.covariance(common);
        self.is_full |= cells.is_full(ones.union);
    }

    /// Adds a part of both filters for which three numbers are known exactly: keys in A, keys in B,
    /// and common keys.
    pub fn add_exact(&mut self, a: u64, b: u64, common: u64) {
        for (sum, keys) in self.keys.iter_mut().zip([a, b, a + b - common]) {
            *sum += keys as f64;
        }
    }

    /// Estimates the overlap from the sums.
    pub fn overlap(&self) -> Overlap {
        let [a, b, union] = self.keys;
        let intersection = a + b - union;
        let whole = |value, variance, most| Interval::new(value, variance, most).whole();
        let share = |slopes: [f64; 3], value: f64| Interval::new(value, self.variance(slopes), 1.0);
        let least = a.min(b);
        let whole_of = |place: usize| whole(self.keys[place], self.variances[place], f64::INFINITY);
        let [of_a, of_b, of_union] = [0, 1, 2].map(whole_of);
        // The number of common keys is at most the upper bound of the smaller set. This upper bound
        // can be higher than the estimated size of that set.
        let most = of_a.high.min(of_b.high);
        let common = whole(intersection, self.variance([1.0, 1.0, -1.0]), most);
        let in_other = |size: f64, slopes: [f64; 3]| {
            (size > 0.0).then(|| share(slopes, intersection.clamp(0.0, least) / size))
        };
        Overlap {
            a: of_a,
            b: of_b,
            union: of_union,
            intersection: Interval { value: common.value.min(least.round()), ..common },
            a_in_b: in_other(a, [(union - b) / (a * a), 1.0 / a, -1.0 / a]),
            b_in_a: in_other(b, [1.0 / b, (union - a) / (b * b), -1.0 / b]),
            jaccard: (union > 0.0).then(|| {
                let slopes = [1.0 / union, 1.0 / union, -(a + b) / (union * union)];
                share(slopes, intersection / union)
            }),
            is_full: self.is_full,
        }
    }

    /// Returns the variance of a value that is computed from three estimates: the keys in A, in B
    /// and in their union. The arguments are the derivatives of the value with respect to these
    /// estimates. The covariance of A and the union is the variance of A, because the union
    /// contains all keys of A.
    fn variance(&self, [by_a, by_b, by_union]: [f64; 3]) -> f64 {
        let [a, b, union] = self.variances;
        by_a * by_a * a
            + by_b * by_b * b
            + by_union * by_union * union
            + 2.0 * (by_a * by_b * self.common + by_a * by_union * a + by_b * by_union * b)
    }
}
