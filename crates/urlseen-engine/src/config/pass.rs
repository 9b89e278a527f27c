//! Rules of `[[pass]]`, which let items of some pages pass unchecked.

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::layers::{Layers, hint};
use super::nearest::nearest;
use super::problem::ValueOrigin;
use super::raw::Raw;

/// Maximum number of rules in a configuration.
const MOST: usize = 100;
/// Maximum length of a rule's name in bytes.
const LONGEST_NAME: usize = 100;
/// Maximum length of a pattern in bytes. A longer pattern takes longer to parse.
const LONGEST_PATTERN: usize = 4096;
/// Maximum memory for a compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;
/// Maximum length in bytes of a host or path that a pattern can match. This bounds the time of a
/// match, which grows with the length and with the states of the pattern.
const LONGEST_MATCHED: usize = 2048;
const KEYS: [&str; 3] = ["name", "host", "path"];

/// Rule that lets items with a matching URL pass unchecked and unrecorded, like items with
/// `dont_filter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Pattern that must match a part of the host.
    pub(crate) host: Option<Pattern>,
    /// Pattern that must match a part of the path.
    pub(crate) path: Option<Pattern>,
}

/// Regular expression with a bounded size.
#[derive(Clone)]
pub(crate) struct Pattern(Regex);

impl PassRule {
    /// Returns true if the rule matches a URL. `host` is the URL's host in lower case.
    pub(crate) fn fits(&self, host: &str, path: &str) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            let is_match = |it: &Pattern| text.len() <= LONGEST_MATCHED && it.0.is_match(text);
            pattern.as_ref().is_none_or(is_match)
        };
        fits(&self.host, host) && fits(&self.path, path)
    }
}

impl Pattern {
    /// Compiles a pattern. Its size is limited.
    fn new(pattern: &str) -> Result<Self, String> {
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

impl Layers {
    /// Adds the rules of a file to the layers. `value` is the value of the key `pass` in the file.
    /// `at` returns the place in the file for a byte offset.
    pub(super) fn add_rules(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        at: impl Fn(usize) -> ValueOrigin,
    ) {
        let DeValue::Array(array) = value.get_ref() else {
            let found = Raw::from_toml(value.get_ref()).kind();
            let reason = "allowed: rules that each begin with the line [[pass]]";
            return self.refuse_rule(at(value.span().start), &format!("is {found}; {reason}"));
        };
        for (index, value) in array.iter().enumerate() {
            let origin = at(value.span().start);
            if index == MOST {
                let reason = format!("is here more than {MOST} times; combine rules");
                return self.refuse_rule(origin, &reason);
            }
            match value.get_ref() {
                DeValue::Table(table) => self.add_rule(table, origin, &at),
                other => {
                    let found = Raw::from_toml(other).kind();
                    let reason = format!("holds {found}; allowed: name, host and path");
                    self.refuse_rule(origin, &reason);
                }
            }
        }
    }

    fn add_rule(
        &mut self,
        table: &DeTable<'_>,
        origin: ValueOrigin,
        at: &impl Fn(usize) -> ValueOrigin,
    ) {
        let before = self.problems.len();
        let mut rule = PassRule { name: String::new(), host: None, path: None };
        for (key, value) in table {
            let (name, here) = (key.get_ref().as_ref(), at(value.span().start));
            if !KEYS.contains(&name) {
                let nearest = nearest(name, KEYS).map(|it| format!("pass.{it}"));
                let fault =
                    format!("there is no key pass.{}{}", name.escape_debug(), hint(nearest));
                self.refuse(at(key.span().start), fault);
                continue;
            }
            let raw = Raw::from_toml(value.get_ref());
            let Ok(text) = raw.text() else {
                let reason = format!("has {name} = {}; allowed: a text in quotes", raw.shown());
                self.refuse_rule(here, &reason);
                continue;
            };
            match name {
                "name" => text.clone_into(&mut rule.name),
                _ => match Pattern::new(text) {
                    Ok(pattern) if name == "host" => rule.host = Some(pattern),
                    Ok(pattern) => rule.path = Some(pattern),
                    Err(reason) => {
                        let reason = format!("has {name} = {}: {reason}", raw.shown());
                        self.refuse_rule(here, &reason);
                    }
                },
            }
        }
        let has = |key: &str| table.iter().any(|(name, _)| name.get_ref() == key);
        let name = &rule.name;
        if self.problems.len() == before {
            if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
                let reason =
                    format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\"");
                self.refuse_rule(origin.clone(), &reason);
            } else if self.pass.iter().any(|other| other.name == *name) {
                let reason =
                    format!("has the name {name:?}, as another rule has; give each its own");
                self.refuse_rule(origin.clone(), &reason);
            }
        }
        if !has("host") && !has("path") {
            self.refuse_rule(origin, "has neither host nor path; give at least one of them");
        }
        self.pass.push(rule);
    }

    fn refuse_rule(&mut self, origin: ValueOrigin, reason: &str) {
        self.refuse(origin, format!("[[pass]] {reason}"));
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
        let rule = |host: Option<&str>, path: Option<&str>| PassRule {
            name: String::new(),
            host: host.map(|it| Pattern::new(it).unwrap()),
            path: path.map(|it| Pattern::new(it).unwrap()),
        };
        let longest = "a".repeat(LONGEST_MATCHED);
        let longer = "a".repeat(LONGEST_MATCHED + 1);
        assert!(rule(None, Some("a$")).fits("h", &longest));
        assert!(!rule(None, Some("a$")).fits("h", &longer));
        assert!(!rule(Some("a"), None).fits(&longer, "/"));
        assert!(rule(Some("h"), None).fits("h", &longer), "only the host is looked at");
    }

    #[test]
    fn all_patterns_of_a_rule_must_fit() {
        let pattern = |text| Some(Pattern::new(text).unwrap());
        let rule = |host, path| PassRule { name: String::new(), host, path };
        let both = rule(pattern(r"^www\."), pattern("^/list/"));
        assert!(both.fits("www.a", "/list/1"));
        assert!(!both.fits("a", "/list/1") && !both.fits("www.a", "/a/list/"));
        assert!(rule(pattern("a"), None).fits("xax", "") && rule(None, pattern("a")).fits("", "a"));
    }
}
