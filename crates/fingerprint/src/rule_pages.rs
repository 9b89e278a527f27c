//! Pages that a rule is for, by scheme, host, path and extension.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
pub use regex::escape;
use regex::{Regex, RegexBuilder};

use super::canonical::{Scheme, split_authority};

/// Maximum length of a pattern in bytes. A longer pattern takes longer to parse.
const LONGEST_PATTERN: usize = 4096;
/// Maximum memory for a compiled pattern or list of names, in bytes.
pub(super) const LARGEST: usize = 1 << 20;
/// Maximum length in bytes of a host or path that a pattern can match. This bounds the time of a
/// match, which grows with the length and with the states of the pattern.
pub(super) const LONGEST_MATCHED: usize = 2048;

/// Pages that a rule is for: those that all patterns match. A pattern must match a part of its
/// text. The patterns are in the order of [`Pages::KEYS`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pages([Option<Pattern>; 4]);

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
#[derive(Debug, Clone)]
pub struct Pattern(pub(super) Regex);

impl Pages {
    /// Keys of the patterns in a rule of the configuration. The pattern `extension` is for the
    /// extension of the file that the path names.
    pub const KEYS: [&'static str; 4] = ["scheme", "host", "path", "extension"];

    /// Returns the pattern of a key; `None` if the key is none of [`Pages::KEYS`].
    pub fn pattern(&mut self, key: &str) -> Option<&mut Option<Pattern>> {
        let place = Self::KEYS.into_iter().position(|it| it == key)?;
        Some(&mut self.0[place])
    }

    /// Returns the pattern of the host.
    pub(super) fn host(&self) -> Option<&Pattern> {
        self.0[1].as_ref()
    }

    /// Returns true if a URL is among the pages.
    pub(crate) fn have(&self, page: &Page<'_>) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            let is_match = |it: &Pattern| text.len() <= LONGEST_MATCHED && it.0.is_match(text);
            pattern.as_ref().is_none_or(is_match)
        };
        let [scheme, host, path, extension] = &self.0;
        fits(host, &page.host)
            && fits(scheme, &page.scheme)
            && fits(path, page.path)
            && (extension.is_none() || fits(extension, &page.extension()))
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns = Self::KEYS.into_iter().zip(&self.0);
        let mut before = "";
        for (key, pattern) in patterns.filter_map(|(key, it)| Some((key, it.as_ref()?))) {
            write!(f, "{before}{key} = '{pattern}'")?;
            before = ", ";
        }
        Ok(())
    }
}

impl<'a> Page<'a> {
    /// Splits a URL, which is canonical or as received.
    pub fn of(url: &'a str) -> Self {
        let url = url.trim_start_matches(|it: char| it <= ' ');
        let (Scheme(scheme), rest) = Scheme::split(url);
        let (_, authority, rest) = split_authority(rest);
        let path = &rest[..memchr2(b'?', b'#', rest.as_bytes()).unwrap_or(rest.len())];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.find(']') {
            Some(end) => &host[..=end],
            None => host.split_once(':').map_or(host, |(host, _)| host),
        };
        // The name of the root may be written or left out.
        let host = host.strip_suffix('.').unwrap_or(host);
        Self { scheme: lower_case(scheme), host: lower_case(host), path }
    }

    /// Returns the host in lower case, without user, port and a dot at its end.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_the_parts_that_patterns_are_for() {
        for (url, scheme, host, path, extension) in [
            ("http://h/a/b?c=/d#e", "http", "h", "/a/b", ""),
            ("http://user:pw@h.org:80/", "http", "h.org", "/", ""),
            ("http://a@b@H", "http", "h", "", ""),
            ("http://h.org.:80/", "http", "h.org", "/", ""),
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
    pub(crate) fn pages<const COUNT: usize>(patterns: [(&str, &str); COUNT]) -> Pages {
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
