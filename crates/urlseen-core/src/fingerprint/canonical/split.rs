//! Cutting a URL into its parts, the way w3lib's `_strip` and `_urlsplit` do.

use memchr::{memchr2, memchr3};

use super::authority;
use super::error::CanonicalizeError;
use super::scheme::Scheme;
use crate::fingerprint::lanes::{self, equal};

/// The parts of a URL as written, delimiters removed; a part that is missing is empty.
pub(super) struct UrlParts<'a> {
    pub(super) scheme: Scheme<'a>,
    /// Checked: brackets and hidden delimiters are as they should be.
    pub(super) authority: &'a str,
    pub(super) tail: UrlTail<'a>,
}

/// Removes what browsers ignore in a URL: C0 controls and spaces around it, tabs and line ends
/// anywhere. In special schemes, `\` before the query and fragment becomes `/`.
///
/// Nearly every URL is returned as it is; `buffer` holds the others.
pub(super) fn cleaned<'a>(url: &'a str, buffer: &'a mut String) -> &'a str {
    let url = url.trim_matches(|edge: char| edge <= ' ');
    let changes = [b'\t', b'\n', b'\r', b'\\'];
    if !lanes::any(url.as_bytes(), |lanes| lanes::one_of(lanes, changes)) {
        return url;
    }
    buffer.clear();
    buffer.extend(url.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')));
    if Scheme::split(buffer).0.is_special() {
        let end = memchr2(b'?', b'#', buffer.as_bytes()).unwrap_or(buffer.len());
        let slashed = buffer[..end].replace('\\', "/");
        buffer.replace_range(..end, &slashed);
    }
    buffer
}

/// Cuts a cleaned URL.
pub(super) fn split(url: &str) -> Result<UrlParts<'_>, CanonicalizeError> {
    let (scheme, rest) = Scheme::split(url);
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => {
            rest.split_at(memchr3(b'/', b'?', b'#', rest.as_bytes()).unwrap_or(rest.len()))
        }
        None => ("", rest),
    };
    authority::check(authority)?;
    Ok(UrlParts { scheme, authority, tail: UrlTail::split(rest) })
}

/// What follows the authority.
#[derive(Clone, Copy)]
pub(super) struct UrlTail<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) fragment: &'a str,
}

impl<'a> UrlTail<'a> {
    /// Cuts at the first `#`, and before it at the first `?`.
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
        Self { path, query, fragment }
    }
}

/// What is before and behind the ASCII delimiter at `at`.
fn cut(text: &str, at: Option<usize>) -> (&str, &str) {
    match at {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}
