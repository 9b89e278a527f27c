//! Pages that a rule is for, by scheme, host, path and extension.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr2, memchr3};
pub use regex::escape;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// Maximum length of a pattern in bytes. A longer pattern takes longer to parse.
const LONGEST_PATTERN: usize = 4096;
/// Maximum memory for a compiled pattern, in bytes.
const LARGEST: usize = 1 << 20;
/// Maximum length in bytes of a host or path that a pattern can match. This bounds the time of a
/// match, which grows with the length and with the states of the pattern.
const LONGEST_MATCHED: usize = 2048;

/// Pages that a rule is for: those that all patterns match. A pattern must match a part of its
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pages {
    scheme: Option<Pattern>,
    host: Option<Pattern>,
    path: Option<Pattern>,
    /// Pattern for the extension of the file that the path names.
    extension: Option<Pattern>,
}

/// URL in the parts that patterns are for.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Scheme in lower case; empty if the URL has none.
    scheme: Cow<'a, str>,
    /// Host in lower case, without user and port.
    host: Cow<'a, str>,
    /// Path without query and fragment.
    path: &'a str,
}

/// Regular expression with a bounded size.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pages {
    /// Keys of the patterns in a rule of the configuration.
    pub const KEYS: [&'static str; 4] = ["scheme", "host", "path", "extension"];

    /// Returns the pattern of a key; `None` if the key is none of [`Pages::KEYS`].
    pub fn pattern(&mut self, key: &str) -> Option<&mut Option<Pattern>> {
        match key {
            "scheme" => Some(&mut self.scheme),
            "host" => Some(&mut self.host),
            "path" => Some(&mut self.path),
            "extension" => Some(&mut self.extension),
            _ => None,
        }
    }

    /// Returns the patterns, in the order of [`Pages::KEYS`].
    pub fn patterns(&self) -> [Option<&Pattern>; 4] {
        [&self.scheme, &self.host, &self.path, &self.extension].map(Option::as_ref)
    }

    /// Returns true if a URL is among the pages.
    pub fn have(&self, page: &Page<'_>) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            let is_match = |it: &Pattern| text.len() <= LONGEST_MATCHED && it.0.is_match(text);
            pattern.as_ref().is_none_or(is_match)
        };
        fits(&self.host, &page.host)
            && fits(&self.scheme, &page.scheme)
            && fits(&self.path, page.path)
            && (self.extension.is_none() || fits(&self.extension, &page.extension()))
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = Self::KEYS.into_iter().zip(self.patterns());
        let mut before = "";
        for (key, pattern) in patterns.filter_map(|(key, it)| Some((key, it?))) {
            write!(f, "{before}{key} = '{pattern}'")?;
            before = ", ";
        }
        Ok(())
    }
}

/// Pages of many rules. For a page whose host no rule names, one search in the host is enough.
#[derive(Debug)]
pub struct ByPages {
    rules: Vec<Pages>,
    /// Patterns of all hosts.
    hosts: RegexSet,
    /// True if there is a rule for all hosts.
    have_all_hosts: bool,
    /// Hosts that no pattern fits, each at the place of its hash. A crawl meets the same hosts
    /// again and again.
    unnamed: Vec<Box<str>>,
}

/// Number of hosts that are remembered: the number of values of a byte.
const REMEMBERED: usize = 1 << u8::BITS;
/// Maximum length in bytes of a host that is remembered.
const LONGEST_REMEMBERED: usize = 64;

impl ByPages {
    /// Collects the pages of rules, in their order.
    pub fn new<'a>(rules: impl Iterator<Item = &'a Pages>) -> Self {
        let rules: Vec<_> = rules.cloned().collect();
        let hosts = rules.iter().filter_map(|it| it.host.as_ref().map(|host| host.0.as_str()));
        // Each pattern has a bounded size.
        let hosts =
            RegexSetBuilder::new(hosts).size_limit(usize::MAX).dfa_size_limit(LARGEST).build();
        let have_all_hosts = rules.iter().any(|it| it.host.is_none());
        let unnamed = vec![Box::default(); REMEMBERED];
        Self { hosts: hosts.expect("each pattern was compiled"), rules, have_all_hosts, unnamed }
    }

    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if the host of a URL shows that no rule is for it. This is faster than to split
    /// the URL.
    pub fn is_foreign(&self, url: &str) -> bool {
        let is_unnamed = |host| self.is_unnamed(host);
        self.rules.is_empty() || !self.have_all_hosts && plain_host(url).is_some_and(is_unnamed)
    }

    /// Iterates over the numbers of the rules that are for a page.
    pub fn matching(&mut self, page: &Page<'_>) -> impl Iterator<Item = usize> {
        let is_named = self.name(&page.host);
        let rules = if is_named || self.have_all_hosts { &self.rules[..] } else { &[] };
        let numbered = rules.iter().enumerate();
        let named = numbered.filter(move |(_, it)| is_named || it.host.is_none());
        named.filter(|(_, it)| it.have(page)).map(|(number, _)| number)
    }

    /// Returns true if a host is remembered as one that no pattern fits.
    fn is_unnamed(&self, host: &str) -> bool {
        !host.is_empty() && *self.unnamed[place(host)] == *host
    }

    /// Returns true if a pattern fits a host. Remembers a host that no pattern fits.
    fn name(&mut self, host: &str) -> bool {
        if self.hosts.is_empty() || self.is_unnamed(host) {
            return false;
        }
        let is_named = host.len() <= LONGEST_MATCHED && self.hosts.is_match(host);
        if !is_named && host.len() <= LONGEST_REMEMBERED {
            self.unnamed[place(host)] = host.into();
        }
        is_named
    }
}

/// Returns the place at which a host is remembered.
fn place(host: &str) -> usize {
    let end = host.as_bytes().last_chunk::<8>().map_or(0, |end| u64::from_le_bytes(*end));
    let mixed = (end ^ host.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::from(mixed.to_be_bytes()[0])
}

/// Returns the host of a canonical URL with `http` or `https`, if it has no user and no port.
fn plain_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http")?;
    let rest = rest.strip_prefix("s://").or_else(|| rest.strip_prefix("://"))?;
    let is_plain =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(byte);
    let end = rest.bytes().position(|byte| !is_plain(&byte))?;
    (rest.as_bytes()[end] == b'/').then(|| &rest[..end])
}

impl<'a> Page<'a> {
    /// Splits a URL, which is canonical or as received.
    pub fn of(url: &'a str) -> Self {
        let url = url.trim_start_matches(|it: char| it <= ' ');
        let (scheme, rest) = match url.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
            _ => ("", url),
        };
        let (authority, rest) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = memchr3(b'/', b'?', b'#', rest.as_bytes());
                rest.split_at(end.unwrap_or(rest.len()))
            }
            None => ("", rest),
        };
        let path = &rest[..memchr2(b'?', b'#', rest.as_bytes()).unwrap_or(rest.len())];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.find(']') {
            Some(end) => &host[..=end],
            None => host.split_once(':').map_or(host, |(host, _)| host),
        };
        Self { scheme: lower_case(scheme), host: lower_case(host), path }
    }

    /// Returns the host in lower case, without user and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the path without query and fragment.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// Returns the extension of the last part of the path, in lower case and without the dot; empty
    /// if it has none.
    fn extension(&self) -> Cow<'a, str> {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let name = name.split(';').next().unwrap_or_default();
        lower_case(name.rsplit_once('.').map_or("", |(_, extension)| extension))
    }
}

/// Returns true if a text can be the scheme of a URL (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn lower_case(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

impl Pattern {
    /// Compiles a pattern. Its size is limited.
    pub fn new(pattern: &str) -> Result<Self, String> {
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

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_the_parts_that_patterns_are_for() {
        for (url, scheme, host, path, extension) in [
            ("http://h/a/b?c=/d#e", "http", "h", "/a/b", ""),
            ("http://user:pw@h.org:80/", "http", "h.org", "/", ""),
            ("http://a@b@H", "http", "h", "", ""),
            ("http://[::1]:80/a;p", "http", "[::1]", "/a;p", ""),
            ("HTTP://H?q", "http", "h", "", ""),
            ("data:/,a?b", "data", "", "/,a", ""),
            ("data:,http://h/a.b", "data", "", ",http://h/a.b", "b"),
            ("foo:///a#://", "foo", "", "/a", ""),
            (" \tMailTo:a@b.c", "mailto", "", "a@b.c", "c"),
            ("JavaScript:void(0)", "javascript", "", "void(0)", ""),
            ("a?b=http://c", "", "", "a", ""),
            ("1:2", "", "", "1:2", ""),
            ("http://h/a.tar.GZ;v=1.2?x=y.z", "http", "h", "/a.tar.GZ;v=1.2", "gz"),
            ("http://h/a.b/c", "http", "h", "/a.b/c", ""),
            ("", "", "", "", ""),
        ] {
            let page = Page::of(url);
            assert_eq!(page, Page { scheme: scheme.into(), host: host.into(), path }, "{url}");
            assert_eq!(page.extension(), extension, "{url}");
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

    /// Makes the pages with these patterns.
    fn pages<const COUNT: usize>(patterns: [(&str, &str); COUNT]) -> Pages {
        let mut pages = Pages::default();
        for (key, pattern) in patterns {
            *pages.pattern(key).unwrap() = Some(Pattern::new(pattern).unwrap());
        }
        pages
    }

    #[test]
    fn long_hosts_and_paths_fit_no_rule() {
        let longest = format!("/{}", "a".repeat(LONGEST_MATCHED - 1));
        let longer = format!("{longest}a");
        let page = |host: &'static str, path| Page { scheme: "".into(), host: host.into(), path };
        assert!(pages([("path", "a$")]).have(&page("h", &longest)));
        assert!(!pages([("path", "a$")]).have(&page("h", &longer)));
        assert!(pages([("host", "h")]).have(&page("h", &longer)), "only the host is looked at");
        let host = longer[1..].to_owned() + "a";
        assert!(!pages([("host", "a")]).have(&Page::of(&format!("http://{host}/"))));
    }

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

    #[test]
    fn all_patterns_of_a_rule_must_fit() {
        let both = pages([("host", r"^www\."), ("path", "^/list/")]);
        assert!(both.have(&Page::of("http://www.a/list/1")));
        assert!(!both.have(&Page::of("http://a/list/1")));
        assert!(!both.have(&Page::of("http://www.a/a/list/")));
        assert_eq!(both.to_string(), r"host = '^www\.', path = '^/list/'");
        assert!(pages([("host", "a")]).have(&Page::of("http://xax")));
        assert!(pages([("scheme", "^mailto$")]).have(&Page::of("MAILTO:a@b")));
        let images = pages([("scheme", "^https?$"), ("extension", "^(png|jpe?g)$")]);
        assert!(images.have(&Page::of("http://h/a.JPEG?b")));
        assert!(
            !images.have(&Page::of("ftp://h/a.png")) && !images.have(&Page::of("http://h/png"))
        );
    }
}
