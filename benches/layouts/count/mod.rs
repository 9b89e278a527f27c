//! Counts how often a filter is wrong: it is filled, in memory, and asked for keys that it was
//! never given. `native` gets no more bits and the same keys.
//!
//! Included by path from the program that counts for docs/design/layouts.md, and from a test
//! that counts in small what that counts in large.

pub mod bits;
pub mod filter;
pub mod keys;
pub mod lines;

use std::ops::Range;

use bits::Bits;
use filter::{Filter, Size};
use lines::Lines;
use serde::{Deserialize, Serialize};

/// Where filters are asked, in percent of what they are made for.
pub const PERCENT: [u64; 4] = [50, 100, 150, 200];

/// The first of the unseen keys: no filter is given so many.
pub const UNSEEN: u64 = 1 << 40;

/// A filter that can be filled.
pub trait Fill {
    /// Sets these keys.
    fn fill(&mut self, keys: Range<u64>);

    /// How many of these keys it takes for seen.
    fn seen(&self, keys: Range<u64>) -> u64;
}

/// What is counted: a filter, the keys that it is made for, or taken for where it does not ask, and
/// how many others it is asked for each time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Case {
    #[serde(flatten)]
    pub filter: Filter,
    pub made_for: u64,
    pub unseen: u64,
}

/// How often a filter was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Count {
    #[serde(flatten)]
    pub case: Case,
    /// Whether it is `native`, in no more memory than that filter has.
    pub native: bool,
    pub percent: u64,
    pub keys: u64,
    /// The error rate as it is computed.
    pub computed: f64,
    /// How many of the unseen keys were taken for seen.
    pub wrong: u64,
}

impl Case {
    /// Fills the filter, and `native` behind it, and hands over each count.
    pub fn count(self, mut each: impl FnMut(Count)) {
        let layout = self.filter.layout();
        self.count_in(Bits::new(&*layout), false, &mut each);
        self.count_in(Lines::new(self.filter.native(self.made_for)), true, &mut each);
    }

    fn count_in(self, mut filter: impl Fill, native: bool, each: &mut impl FnMut(Count)) {
        let mut filled = 0;
        for percent in PERCENT {
            let keys = (self.made_for * percent).div_ceil(100);
            filter.fill(filled..keys);
            filled = keys;
            let wrong = filter.seen(UNSEEN..UNSEEN + self.unseen);
            let computed = self.computed(native, keys);
            each(Count { case: self, native, percent, keys, computed, wrong });
        }
    }

    /// What the filter takes.
    pub fn size(self) -> Size {
        self.filter.size(self.made_for)
    }

    /// The error rate that the filter is computed to have, or `native` in its place.
    pub fn computed(self, native: bool, keys: u64) -> f64 {
        if native {
            self.filter.native(self.made_for).error_rate_at(keys)
        } else {
            self.filter.layout().error_rate(keys)
        }
    }
}
