//! Parts of a URL, as w3lib's `_strip` and `_urlsplit` split it; the rules that depend on the
//! scheme.

use memchr::{memchr2, memchr3};

use super::CanonicalForm;
use super::authority::{self, CanonicalizeError};
use super::escapes::SCHEME;
use super::path_query::UrlTail;
use super::steps::{Observer, Rule};
use crate::lanes;

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
/// fragment becomes `/`, except in w3lib 2.4.
///
/// Nearly all URLs are returned unchanged. A changed URL is written into `buffer`.
pub(super) fn cleaned<'a>(
    url: &'a str,
    form: CanonicalForm,
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
    if !form.is_old() && Scheme::split(buffer).0.is_special() {
        let end = memchr2(b'?', b'#', buffer.as_bytes()).unwrap_or(buffer.len());
        let slashed = buffer[..end].replace('\\', "/");
        buffer.replace_range(..end, &slashed);
        observer.step(Rule::Backslashes, || buffer.clone());
    }
    buffer
}

/// Splits a cleaned URL into its parts.
pub(super) fn split(url: &str, form: CanonicalForm) -> Result<UrlParts<'_>, CanonicalizeError> {
    let (scheme, rest) = Scheme::split(url);
    let (slashes, authority, rest) = split_authority(rest);
    authority::check(authority, form)?;
    Ok(UrlParts { scheme, slashes, authority, tail: UrlTail::split(rest) })
}

/// Splits the text after a scheme into the slashes before the authority, the authority, and the
/// rest. Without slashes, there is no authority.
pub(crate) fn split_authority(text: &str) -> (&str, &str, &str) {
    let (slashes, rest) = text.split_at(if text.starts_with("//") { 2 } else { 0 });
    let end = memchr3(b'/', b'?', b'#', rest.as_bytes()).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(if slashes.is_empty() { 0 } else { end });
    (slashes, authority, rest)
}

/// Scheme of a URL as written; empty if the URL has no scheme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheme<'a>(pub(crate) &'a str);

/// Special schemes of the WHATWG URL standard. In URLs with these schemes, a `\` has the meaning of
/// a `/`.
const SPECIAL: [&str; 6] = ["http", "https", "ftp", "file", "ws", "wss"];

/// `uses_netloc` of Python's `urllib.parse`: schemes whose URLs usually have an authority. With
/// these schemes, a URL that has the path `/a` and no authority is written `scheme:///a`.
const WITH_AUTHORITY: [&str; 25] = [
    "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp",
    "snews", "prospero", "rtsp", "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git",
    "git+ssh", "ws", "wss",
];

/// `uses_params` of Python's `urllib.parse`: schemes whose last path segment may have `;`
/// parameters.
const WITH_PARAMETERS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu",
    "sip", "sips", "mms", "sftp", "tel",
];

impl<'a> Scheme<'a> {
    /// Splits `url` into its scheme and the text after the colon. Without a scheme, that text is
    /// the whole URL.
    pub(crate) fn split(url: &'a str) -> (Self, &'a str) {
        let length = SCHEME.run(url.as_bytes());
        let starts_with_letter = url.starts_with(|first: char| first.is_ascii_alphabetic());
        match url[length..].strip_prefix(':') {
            Some(rest) if starts_with_letter => (Self(&url[..length]), rest),
            _ => (Self(""), url),
        }
    }

    pub(super) fn is_special(self) -> bool {
        self.is_one_of(&SPECIAL)
    }

    pub(super) fn has_authority(self) -> bool {
        self.is_one_of(&WITH_AUTHORITY)
    }

    pub(super) fn has_parameters(self) -> bool {
        self.is_one_of(&WITH_PARAMETERS)
    }

    fn is_one_of(self, schemes: &[&str]) -> bool {
        schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case(self.0))
    }

    /// Appends the scheme in lower case and a colon. If the scheme is empty, appends nothing.
    pub(super) fn push(self, out: &mut String) {
        if !self.0.is_empty() {
            let start = out.len();
            out.push_str(self.0);
            out[start..].make_ascii_lowercase();
            out.push(':');
        }
    }
}
