//! Matching of many rules against a URL: their pages are searched by their hosts first.

use memchr::memchr;
use regex::{RegexSet, RegexSetBuilder};

use super::rule_pages::{LARGEST, LONGEST_MATCHED, Page, Pages};

/// Pages of many rules. For a page whose host no rule names, a look at the host is enough. Clones
/// share the compiled patterns.
#[derive(Debug, Clone)]
pub struct ByPages {
    rules: Vec<Pages>,
    /// Hosts that rules name; `None` if no rule names any.
    hosts: Option<Box<Hosts>>,
    /// True if there is a rule for all hosts.
    have_all_hosts: bool,
}

/// Hosts that rules name.
#[derive(Debug, Clone)]
struct Hosts {
    patterns: RegexSet,
    /// Hosts that no pattern fits, each at the place of its hash. A crawl meets the same hosts
    /// again and again.
    unnamed: Vec<Box<str>>,
}

/// Number of hosts that are remembered: the number of values of a byte.
const REMEMBERED: usize = 1 << u8::BITS;
/// Maximum length in bytes of a host that is remembered.
const LONGEST_REMEMBERED: usize = 64;

impl Hosts {
    /// Collects the patterns of hosts. Returns `None` if there are none.
    fn of(patterns: Vec<String>) -> Option<Box<Self>> {
        if patterns.is_empty() {
            return None;
        }
        // Each pattern has a bounded size.
        let mut set = RegexSetBuilder::new(patterns);
        set.size_limit(usize::MAX).dfa_size_limit(LARGEST);
        let patterns = set.build().expect("each pattern was compiled");
        Some(Box::new(Self { patterns, unnamed: vec![Box::default(); REMEMBERED] }))
    }

    /// Returns true if a host is remembered as one that no pattern fits.
    fn know_as_unnamed(&self, host: &str) -> bool {
        !host.is_empty() && *self.unnamed[place(host)] == *host
    }

    /// Returns true if a pattern fits a host. Remembers a host that no pattern fits.
    fn have(&mut self, host: &str) -> bool {
        if self.know_as_unnamed(host) {
            return false;
        }
        let has_pattern = host.len() <= LONGEST_MATCHED && self.patterns.is_match(host);
        if !has_pattern && host.len() <= LONGEST_REMEMBERED {
            self.unnamed[place(host)] = host.into();
        }
        has_pattern
    }
}

impl ByPages {
    /// Collects the pages of rules, in their order.
    pub fn new<'a>(rules: impl Iterator<Item = &'a Pages>) -> Self {
        let rules: Vec<_> = rules.cloned().collect();
        let hosts = rules.iter().filter_map(|it| Some(it.host()?.to_string()));
        let hosts = Hosts::of(hosts.collect());
        let have_all_hosts = rules.iter().any(|it| it.host().is_none());
        Self { rules, hosts, have_all_hosts }
    }

    /// Returns true if the host of a URL shows that no rule is for it. This is faster than to split
    /// the URL.
    pub fn is_foreign(&self, url: &str) -> bool {
        let is_unnamed = |host| self.hosts.as_ref().is_some_and(|it| it.know_as_unnamed(host));
        self.rules.is_empty() || !self.have_all_hosts && authority(url).is_some_and(is_unnamed)
    }

    /// Iterates over the numbers of the rules that are for a page.
    pub fn matching(&mut self, page: &Page<'_>) -> impl Iterator<Item = usize> {
        let is_named = self.hosts.as_mut().is_some_and(|hosts| hosts.have(page.host()));
        let rules = if is_named || self.have_all_hosts { &self.rules[..] } else { &[] };
        let numbered = rules.iter().enumerate();
        let named = numbered.filter(move |(_, it)| is_named || it.host().is_none());
        named.filter(|(_, it)| it.have(page)).map(|(number, _)| number)
    }
}

/// Returns the place at which a host is remembered.
fn place(host: &str) -> usize {
    let [lowest, ..] = crc32c::crc32c(host.as_bytes()).to_le_bytes();
    usize::from(lowest)
}

/// Returns the text before the path of a URL with `http` or `https`. If it has no user and no port,
/// it is the host.
fn authority(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http")?;
    let rest = rest.strip_prefix("s://").or_else(|| rest.strip_prefix("://"))?;
    memchr(b'/', rest.as_bytes()).map(|end| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::super::rule_pages::tests::pages;
    use super::*;

    #[test]
    fn a_host_that_no_rule_names_is_remembered_and_no_other() {
        let rules = [pages([("host", r"^a\.x$"), ("path", "^/p")]), pages([("host", r"\.b\.x$")])];
        let mut by_pages = ByPages::new(rules.iter());
        let mut matching = |url: &str| {
            let before = by_pages.is_foreign(url);
            let numbers: Vec<_> = by_pages.matching(&Page::of(url)).collect();
            (before, numbers, by_pages.is_foreign(url))
        };
        for (url, numbers, is_foreign) in [
            ("http://a.x/p", vec![0], false),
            ("https://a.x/q", vec![], false),
            ("http://c.b.x/", vec![1], false),
            ("http://example.org/p", vec![], true),
            ("http://u@example.com/p", vec![], false),
            ("http://example.net:80/p", vec![], false),
            ("ftp://example.info/p", vec![], false),
            ("http://example.edu", vec![], false),
        ] {
            assert_eq!(matching(url), (false, numbers, is_foreign), "{url}");
        }
        assert!(matching("http://example.org/q").0, "another path of the host");
        assert!(!matching("http://example.orgs/q").0 && !matching("http://xample.org/q").0);
        let all = [pages([("path", "^/p")])];
        let mut all = ByPages::new(all.iter());
        assert!(all.matching(&Page::of("http://a/q")).next().is_none());
        assert!(!all.is_foreign("http://a/p"), "a rule for all hosts");
        assert!(ByPages::new([].iter()).is_foreign("http://a/p"));
        let none = [pages([("host", "^$")])];
        assert!(!ByPages::new(none.iter()).is_foreign("http:///p"), "a rule for no host");
    }
}
