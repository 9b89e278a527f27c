//! Counts the errors of a filter: fills the filter in memory, and tests keys that were never set.
//! `native` gets the same keys, and at most the same number of bits.
//!
//! The program that counts for docs/design/layouts.md includes this module by its path. A test that
//! counts small filters also includes it.

pub mod bits;
pub mod filter;
pub mod keys;
pub mod lines;

use std::ops::Range;

use bits::Bits;
use filter::{Filter, Size};
use lines::Lines;
use serde::{Deserialize, Serialize};

/// Fills at which the filter tests unseen keys, in percent of its capacity.
pub const PERCENT: [u64; 4] = [50, 100, 150, 200];

/// Number of the first unseen key. No filter gets as many keys.
pub const UNSEEN: u64 = 1 << 40;

/// Filter that can be filled and tested.
pub trait Fill {
    /// Sets all of these keys.
    fn fill(&mut self, keys: Range<u64>);

    /// Returns the number of these keys that the filter reports as seen.
    fn seen(&self, keys: Range<u64>) -> u64;
}

/// Filter to count, the number of keys that it is made for, and the number of unseen keys that it
/// tests each time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Case {
    #[serde(flatten)]
    pub filter: Filter,
    pub made_for: u64,
    pub unseen: u64,
}

/// Errors of a filter at one fill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Count {
    #[serde(flatten)]
    pub case: Case,
    /// True for a `native` filter that has at most the memory of the case's filter.
    pub native: bool,
    pub percent: u64,
    pub keys: u64,
    /// Error rate according to the layout's formula.
    pub computed: f64,
    /// Number of unseen keys that the filter reported as seen.
    pub wrong: u64,
}

impl Case {
    /// Fills the filter and then `native`. Passes each count to `each`.
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

    /// Returns the size of the filter.
    pub fn size(self) -> Size {
        self.filter.size(self.made_for)
    }

    /// Returns the computed error rate of the filter. If `native` is true, returns the computed
    /// error rate of a `native` filter with at most the same memory.
    pub fn computed(self, native: bool, keys: u64) -> f64 {
        if native {
            self.filter.native(self.made_for).error_rate_at(keys)
        } else {
            self.filter.layout().error_rate(keys)
        }
    }
}
