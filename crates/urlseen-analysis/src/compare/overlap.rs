//! From counted bits to sizes, shares and their bounds.

use serde::Serialize;

use super::{Cells, Ones};

/// Standard deviations to either side that 95 % of a normal distribution lie within.
const WITHIN_95: f64 = 1.959_964;

/// An estimate, and the bounds that the truth is within 95 times of 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    fn new(value: f64, variance: f64, most: f64) -> Self {
        let reach = WITHIN_95 * variance.max(0.0).sqrt();
        let within = |number: f64| number.clamp(0.0, most);
        Self { value: within(value), low: within(value - reach), high: within(value + reach) }
    }

    /// The same in whole numbers, the bounds rounded away from each other.
    fn whole(self) -> Self {
        Self { value: self.value.round(), low: self.low.floor(), high: self.high.ceil() }
    }
}

/// What two filters hold, together and in common: numbers of keys, and shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlap {
    /// Keys of A.
    pub a: Interval,
    /// Keys of B.
    pub b: Interval,
    /// Keys of A or B.
    pub union: Interval,
    /// Keys of A and B.
    pub intersection: Interval,
    /// The share of A that is in B.
    pub a_in_b: Option<Interval>,
    /// The share of B that is in A.
    pub b_in_a: Option<Interval>,
    /// Jaccard's: the intersection by the union.
    pub jaccard: Option<Interval>,
    /// Whether a part of a filter is so full that nothing can be said of it: then the sizes are
    /// lower bounds.
    pub is_full: bool,
}

/// What was counted of two exact sets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ExactOverlap {
    /// Keys of A.
    pub a: u64,
    /// Keys of B.
    pub b: u64,
    /// Keys of A and B.
    pub intersection: u64,
}

impl From<ExactOverlap> for Overlap {
    fn from(ExactOverlap { a, b, intersection }: ExactOverlap) -> Self {
        let exact = |number: f64| Interval { value: number, low: number, high: number };
        let whole = |number: u64| exact(number as f64);
        let share = |all: u64| (all > 0).then(|| exact(intersection as f64 / all as f64));
        let union = a + b - intersection;
        Self {
            a: whole(a),
            b: whole(b),
            union: whole(union),
            intersection: whole(intersection),
            a_in_b: share(a),
            b_in_a: share(b),
            jaccard: share(union),
            is_full: false,
        }
    }
}

/// Sums over the parts of two filters.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Keys of A, of B, and of A or B.
    keys: [f64; 3],
    /// How much each of them wavers.
    variances: [f64; 3],
    /// How much the estimates of A and of B waver together.
    common: f64,
    is_full: bool,
}

impl Totals {
    /// Adds a part, in which keys choose bits as `cells` says.
    pub fn add(&mut self, cells: &Cells, ones: Ones) {
        let [a, b, union] = [ones.a, ones.b, ones.union].map(|ones| cells.keys(ones));
        for (sum, keys) in self.keys.iter_mut().zip([a, b, union]) {
            *sum += keys;
        }
        // What is possible: else the sets' variances would not be those of any sets.
        let common = (a + b - union).clamp(0.0, a.min(b));
        for (sum, keys) in self.variances.iter_mut().zip([a, b, a + b - common]) {
            *sum += cells.covariance(keys);
        }
        self.common += cells.covariance(common);
        self.is_full |= cells.is_full(ones.union);
    }

    /// What that says.
    pub fn overlap(&self) -> Overlap {
        let [a, b, union] = self.keys;
        let intersection = a + b - union;
        let whole = |value, variance, most| Interval::new(value, variance, most).whole();
        let share = |slopes: [f64; 3], value: f64| Interval::new(value, self.variance(slopes), 1.0);
        let least = a.min(b);
        let whole_of = |place: usize| whole(self.keys[place], self.variances[place], f64::INFINITY);
        let [of_a, of_b, of_union] = [0, 1, 2].map(whole_of);
        // As much as the smaller set can have, which may be more than its estimate.
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

    /// The variance of what depends on A, B, and A or B by these slopes. A set and the union have
    /// the set in common.
    fn variance(&self, [by_a, by_b, by_union]: [f64; 3]) -> f64 {
        let [a, b, union] = self.variances;
        by_a * by_a * a
            + by_b * by_b * b
            + by_union * by_union * union
            + 2.0 * (by_a * by_b * self.common + by_a * by_union * a + by_b * by_union * b)
    }
}
