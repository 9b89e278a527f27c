//! Pages that a rule is for, by host and path.

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};

/// Maximum length of a pattern in bytes. A longer pattern takes longer to parse.
const LONGEST_PATTERN: usize = 4096;
/// Maximum memory for a compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;
/// Maximum length in bytes of a host or path that a pattern can match. This bounds the time of a
/// match, which grows with the length and with the states of the pattern.
const LONGEST_MATCHED: usize = 2048;

/// Pages that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pages {
    /// Pattern that must match a part of the host.
    pub(super) host: Option<Pattern>,
    /// Pattern that must match a part of the path.
    pub(super) path: Option<Pattern>,
}

/// Regular expression with a bounded size.
#[derive(Clone)]
pub(crate) struct Pattern(Regex);

impl Pages {
    /// Returns true if a URL is among the pages. `host` is the URL's host in lower case.
    pub(crate) fn have(&self, host: &str, path: &str) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            let is_match = |it: &Pattern| text.len() <= LONGEST_MATCHED && it.0.is_match(text);
            pattern.as_ref().is_none_or(is_match)
        };
        fits(&self.host, host) && fits(&self.path, path)
    }
}

impl Pattern {
    /// Compiles a pattern. Its size is limited.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let length = pattern.len();
        if length > LONGEST_PATTERN {
            return Err(format!("{length} bytes long; allowed: {LONGEST_PATTERN} at most"));
        }
        let compiled =
            RegexBuilder::new(pattern).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        compiled.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(most) => {
                format!("compiled, it takes more than {most} bytes; write a simpler one")
            }
            // The message has several lines. The last line states the reason.
            other => {
                let said = other.to_string();
                let last = said.lines().last().unwrap_or_default().trim();
                format!("not a regular expression: {}", last.trim_start_matches("error: "))
            }
        })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}

/// Splits a URL into its host, in lower case, and its path. The URL is canonical, or verbatim.
pub(crate) fn host_and_path(url: &str) -> (Cow<'_, str>, &str) {
    let (authority, rest) = match url.split_once("://") {
        Some((_, rest)) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => ("", url.split_once(':').map_or(url, |(_, rest)| rest)),
    };
    let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        (host.to_ascii_lowercase().into(), path)
    } else {
        (host.into(), path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_at_its_host_and_path() {
        for (url, host, path) in [
            ("http://h/a/b?c=/d#e", "h", "/a/b"),
            ("http://user:pw@h.org:80/", "h.org", "/"),
            ("http://a@b@H", "h", ""),
            ("http://[::1]:80/a;p", "[::1]", "/a;p"),
            ("HTTP://H?q", "h", ""),
            ("data:/,a?b", "", "/,a"),
            ("foo:///a#://", "", "/a"),
        ] {
            assert_eq!(host_and_path(url), (host.into(), path), "{url}");
        }
    }

    #[test]
    fn patterns_that_would_grow_large_are_refused() {
        for text in [
            "(a{1000}){1000}",
            "((a{100}){100}){100}",
            "(?:(?:(?:a?){99}){99}){99}",
            r"\w{5000}",
            &"a|".repeat(1 << 20),
            &("(".repeat(1000) + &")".repeat(1000)),
        ] {
            let refused = Pattern::new(text).unwrap_err();
            let says = ["write a simpler one", "not a regular expression: ", "4096 at most"];
            assert!(says.iter().any(|it| refused.contains(it)), "{refused}");
        }
    }

    #[test]
    fn long_hosts_and_paths_fit_no_rule() {
        let rule = |host: Option<&str>, path: Option<&str>| Pages {
            host: host.map(|it| Pattern::new(it).unwrap()),
            path: path.map(|it| Pattern::new(it).unwrap()),
        };
        let longest = "a".repeat(LONGEST_MATCHED);
        let longer = "a".repeat(LONGEST_MATCHED + 1);
        assert!(rule(None, Some("a$")).have("h", &longest));
        assert!(!rule(None, Some("a$")).have("h", &longer));
        assert!(!rule(Some("a"), None).have(&longer, "/"));
        assert!(rule(Some("h"), None).have("h", &longer), "only the host is looked at");
    }

    #[test]
    fn all_patterns_of_a_rule_must_fit() {
        let pattern = |text| Some(Pattern::new(text).unwrap());
        let rule = |host, path| Pages { host, path };
        let both = rule(pattern(r"^www\."), pattern("^/list/"));
        assert!(both.have("www.a", "/list/1"));
        assert!(!both.have("a", "/list/1") && !both.have("www.a", "/a/list/"));
        assert!(rule(pattern("a"), None).have("xax", "") && rule(None, pattern("a")).have("", "a"));
    }
}
