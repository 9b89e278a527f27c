//! Functions that split a URL into its parts, as w3lib's `_strip` and `_urlsplit` do.

use memchr::{memchr2, memchr3};

use super::authority;
use super::error::CanonicalizeError;
use super::rule::Rule;
use super::scheme::Scheme;
use super::steps::Observer;
use crate::fingerprint::lanes::{self, equal};

/// Parts of a URL as written, without delimiters. A missing part is an empty text.
pub(super) struct UrlParts<'a> {
    pub(super) scheme: Scheme<'a>,
    /// Slashes before the authority, if there are two.
    pub(super) slashes: &'a str,
    /// Authority that [`authority::check`] has accepted.
    pub(super) authority: &'a str,
    pub(super) tail: UrlTail<'a>,
}

/// Removes the characters that browsers ignore: C0 controls and spaces at both ends, tabs and line
/// ends anywhere. In a URL with a special scheme, such as `http`, each `\` before the query and the
/// fragment becomes `/`.
///
/// Nearly all URLs are returned unchanged. A changed URL is written into `buffer`.
pub(super) fn cleaned<'a>(
    url: &'a str,
    buffer: &'a mut String,
    observer: &mut impl Observer,
) -> &'a str {
    let url = url.trim_matches(|edge: char| edge <= ' ');
    observer.step(Rule::Edges, || url.to_owned());
    let changes = [b'\t', b'\n', b'\r', b'\\'];
    if !lanes::any(url.as_bytes(), |lanes| lanes::one_of(lanes, changes)) {
        return url;
    }
    buffer.clear();
    buffer.extend(url.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')));
    observer.step(Rule::Breaks, || buffer.clone());
    if Scheme::split(buffer).0.is_special() {
        let end = memchr2(b'?', b'#', buffer.as_bytes()).unwrap_or(buffer.len());
        let slashed = buffer[..end].replace('\\', "/");
        buffer.replace_range(..end, &slashed);
        observer.step(Rule::Backslashes, || buffer.clone());
    }
    buffer
}

/// Splits a cleaned URL into its parts.
pub(super) fn split(url: &str) -> Result<UrlParts<'_>, CanonicalizeError> {
    let (scheme, rest) = Scheme::split(url);
    let (slashes, rest) = rest.split_at(if rest.starts_with("//") { 2 } else { 0 });
    let end = memchr3(b'/', b'?', b'#', rest.as_bytes()).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(if slashes.is_empty() { 0 } else { end });
    authority::check(authority)?;
    Ok(UrlParts { scheme, slashes, authority, tail: UrlTail::split(rest) })
}

/// Parts of a URL after the authority.
#[derive(Clone, Copy)]
pub(super) struct UrlTail<'a> {
    /// All parts with their delimiters.
    pub(super) text: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) fragment: &'a str,
}

impl<'a> UrlTail<'a> {
    /// Splits a text at the first `#`, and the part before that at the first `?`.
    pub(super) fn split(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let path_end = lanes::position(bytes, |lanes| lanes::one_of(lanes, [b'?', b'#']));
        let end = match path_end {
            Some(at) if bytes[at] == b'?' => {
                lanes::position(&bytes[at..], |lanes| equal(lanes, b'#')).map(|length| at + length)
            }
            end => end,
        };
        let (rest, fragment) = cut(text, end);
        let (path, query) = cut(rest, path_end.filter(|&at| at < rest.len()));
        Self { text, path, query, fragment }
    }

    /// Returns the text after the path.
    pub(super) fn after_path(&self) -> &'a str {
        &self.text[self.path.len()..]
    }

    /// Returns the text after the query.
    pub(super) fn after_query(&self) -> &'a str {
        &self.text[self.text.find('#').unwrap_or(self.text.len())..]
    }
}

/// Splits a text at the ASCII delimiter at `at`, and drops the delimiter. Without a position, the
/// second part is empty.
fn cut(text: &str, at: Option<usize>) -> (&str, &str) {
    match at {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}
