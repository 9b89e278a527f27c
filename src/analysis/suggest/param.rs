//! Parameters of queries, and what their values say about them.

use std::collections::HashSet;

use super::Trial;
use crate::analysis::hash;

/// Maximum number of different values that are counted.
const MOST_VALUES: usize = 100_000;
/// Minimum number of different values of a session id. A parameter with fewer values, such as a
/// language, often changes the page.
const LEAST_VALUES: usize = 20;
/// Minimum number of paths with a session id. A parameter of fewer paths often names the page.
const LEAST_PATHS: usize = 5;

/// Different values of a parameter.
#[derive(Debug, Default)]
pub(super) struct ParameterValues {
    hashes: HashSet<u64>,
    /// Lowest and highest value; `None` if a value is not a number.
    range: Option<[u64; 2]>,
}

impl ParameterValues {
    pub(super) fn add(&mut self, value: &str) {
        let number = value.parse().ok().filter(|_| value.len() < 10);
        self.range = match (self.hashes.is_empty(), self.range, number) {
            (true, _, number) => number.map(|number| [number; 2]),
            (false, Some([low, high]), Some(number)) => Some([low.min(number), high.max(number)]),
            (false, ..) => None,
        };
        if self.hashes.len() < MOST_VALUES {
            self.hashes.insert(hash(value.as_bytes()));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns true if the values count something, such as pages: they are numbers, and not far
    /// apart.
    pub(super) fn are_counted(&self) -> bool {
        self.range.is_some_and(|[low, high]| high - low <= 10 * self.hashes.len() as u64)
    }
}

/// Parameter in the queries of a site.
#[derive(Debug, Default)]
pub(super) struct Param {
    pub(super) values: ParameterValues,
    pub(super) paths: HashSet<u64>,
    /// Hashes of the patterns of the paths.
    pub(super) patterns: HashSet<u64>,
    /// Trial of the URLs without the parameter.
    pub(super) trial: Trial,
}

impl Param {
    /// Returns true if the values seem to change nothing: there are many, they count nothing, and
    /// the parameter is on many paths of the site, which has `patterns` patterns of paths.
    pub(super) fn changes_nothing(&self, patterns: usize) -> bool {
        self.values.len() >= LEAST_VALUES
            && !self.values.are_counted()
            && self.paths.len() >= LEAST_PATHS
            && 5 * self.patterns.len() >= patterns
            && self.trial.is_useful()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_counted(values: &[&str]) -> bool {
        let mut all = ParameterValues::default();
        for value in values {
            all.add(value);
        }
        all.are_counted()
    }

    #[test]
    fn page_numbers_count_something_and_session_ids_do_not() {
        assert!(are_counted(&["1", "2", "3"]) && are_counted(&["10", "20", "20"]));
        for values in [&["1", "2", "a"][..], &["a", "1"], &["5f1c", "77"], &["80000", "123"], &[""]]
        {
            assert!(!are_counted(values), "{values:?}");
        }
    }
}
