//! Trial of one change to URLs: counts the URLs that would become equal.

use std::collections::HashSet;

use crate::hash::hash;

/// Maximum number of examples of a change.
const EXAMPLES: usize = 3;

/// Different URLs that a change would alter, and the results.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Number of different URLs that the change alters.
    pub(super) changed: u64,
    /// Different URLs that were tried, altered or not.
    urls: HashSet<u64>,
    results: HashSet<u64>,
    /// The first links with these URLs, as examples.
    pub(super) examples: Vec<String>,
}

impl Trial {
    /// Adds a URL, and the result of the change. Both may be simpler than the link itself.
    pub(super) fn add(&mut self, link: &str, url: &str, result: &str) {
        if !self.urls.insert(hash(url.as_bytes())) || url == result {
            return;
        }
        self.changed += 1;
        self.results.insert(hash(result.as_bytes()));
        if self.examples.len() < EXAMPLES {
            self.examples.push(link.to_owned());
        }
    }

    /// Returns the number of requests that the change would save, among these different URLs.
    pub(super) fn saved(&self) -> u64 {
        let present = self.results.intersection(&self.urls).count() as u64;
        self.changed + present - self.results.len() as u64
    }

    /// Returns true if most of the URLs would become equal to others, and not just a few.
    pub(super) fn is_useful(&self) -> bool {
        const LEAST: u64 = 10;
        let saved = self.saved();
        saved >= LEAST && 2 * saved >= self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_saves_urls_that_become_equal_to_each_other_or_to_an_unchanged_one() {
        let mut trial = Trial::default();
        for url in ["a?x=1", "a?x=2", "b?x=1", "a", "c?x=1", "c?x=2", "c?x=2", "a?x=1"] {
            trial.add(url, url, &url[..1]);
        }
        assert_eq!((trial.changed, trial.saved()), (5, 3));
        assert_eq!(trial.examples.len(), EXAMPLES);
    }
}
