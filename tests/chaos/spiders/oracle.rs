//! Oracle of a crawl with spiders: no page is lost with its spider, and no other page is fetched
//! twice.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::site::Site;
use super::spider::Spider;

/// Spider that was killed, or stopped until others had its requests.
pub(crate) struct Died {
    pub(crate) spider: Spider,
    /// Pages that Redis held for the spider when it was dead. Other spiders must finish them.
    pub(crate) held: HashSet<String>,
    /// Pages that Redis held for the spider at any moment after the signal. They may be fetched
    /// once more.
    pub(crate) ever: HashSet<String>,
}

/// Difference between a crawl and a right one, in words. It is empty if the crawl was right.
pub(crate) struct Verdict {
    wrong: Vec<String>,
    pages: usize,
    died: usize,
    held: usize,
    again: u64,
}

impl Verdict {
    /// Judges a crawl: from the fetches of each page, the spiders that died and those that ended,
    /// and what is left in Redis.
    pub(crate) fn new(
        hits: &HashMap<String, u64>,
        died: &[Died],
        ended: &[Spider],
        left: Vec<String>,
    ) -> Self {
        let finished: Vec<HashSet<String>> = died
            .iter()
            .map(|it| &it.spider)
            .chain(ended)
            .map(|it| it.finished().into_iter().collect())
            .collect();
        let mut wrong = left;
        let paths: HashSet<String> = Site::paths().into_iter().collect();
        for path in &paths {
            if !hits.contains_key(path) {
                wrong.push(format!("{path} was not fetched"));
            } else if !finished.iter().any(|pages| pages.contains(path)) {
                wrong.push(format!("{path} was fetched and not finished"));
            }
        }
        for (number, victim) in died.iter().enumerate() {
            for path in &victim.held {
                let mut others = finished.iter().enumerate().filter(|(it, _)| *it != number);
                if !others.any(|(_, pages)| pages.contains(path)) {
                    let name = &victim.spider.name;
                    wrong.push(format!("{path} was held by {name}, and finished by no other"));
                }
            }
        }
        for (path, count) in hits {
            let holders = died.iter().filter(|it| it.ever.contains(path)).count() as u64;
            if *count > 1 + holders || !paths.contains(path) {
                let name = "times, and was held by dead spiders";
                wrong.push(format!("{path} was fetched {count} {name} {holders} times"));
            }
        }
        let errors = died.iter().map(|it| &it.spider).chain(ended);
        wrong.extend(errors.flat_map(Spider::errors));
        Self {
            wrong,
            pages: hits.len(),
            died: died.len(),
            held: died.iter().map(|it| it.ever.len()).sum(),
            again: hits.values().map(|count| count - 1).sum(),
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wrong, pages, died, held, again } = self;
        write!(
            f,
            "{pages} pages, {died} spiders died with {held} requests, {again} fetched again"
        )?;
        if wrong.is_empty() {
            return write!(f, ", right");
        }
        writeln!(f, ", WRONG")?;
        wrong.iter().try_for_each(|it| writeln!(f, "  {it}"))
    }
}
