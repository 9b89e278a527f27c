//! Parts of a URL, as w3lib's `_strip` and `_urlsplit` split it; the rules that depend on the
//! scheme; for each part the set of bytes that w3lib does not escape there; percent-escapes.

use memchr::{memchr2, memchr3};

use super::CanonicalForm;
use super::authority::{self, CanonicalizeError};
use super::path_query::UrlTail;
use super::steps::{Observer, Rule};
use crate::lanes::{self, Lanes, one_of, within};

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

/// Set of bytes, as a look-up table.
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Creates a set with all ASCII letters and digits, and with the bytes `others`.
    const fn alphanumeric_and(others: &[u8]) -> Self {
        let mut table = [false; 256];
        let mut byte: u8 = 0;
        while byte.is_ascii() {
            table[byte as usize] = byte.is_ascii_alphanumeric();
            byte += 1;
        }
        let mut index = 0;
        while index < others.len() {
            table[others[index] as usize] = true;
            index += 1;
        }
        Self(table)
    }

    /// Returns this set without `byte`.
    const fn without(mut self, byte: u8) -> Self {
        self.0[byte as usize] = false;
        self
    }

    pub(super) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    /// Returns the number of bytes at the start of `text` that are in the set.
    pub(super) fn run(&self, text: &[u8]) -> usize {
        text.iter().position(|&byte| !self.has(byte)).unwrap_or(text.len())
    }
}

/// Bytes that stay unchanged when a path, parameter or fragment is made safe: w3lib's
/// `_PATH_SAFEST_CHARS`. These are the reserved and unreserved characters of RFC 3986 and `%`,
/// without `# [ ]`.
pub(super) static SAFE: ByteSet = ByteSet::alphanumeric_and(b":/?@!$&'()*+,;=-._~%");

/// Bytes that stay unchanged in the parameters and the fragment of a URL that w3lib 2.4 makes
/// canonical: its `_safe_chars`.
pub(super) static SAFE_2_4: ByteSet = ByteSet::alphanumeric_and(b":/?#[]@!$&'()*+,;=-._~|%");

/// Bytes that stay unchanged when the query of a URL with a special scheme, such as `http`, is made
/// safe. The apostrophe is missing, because browsers escape it in such a query.
pub(super) static SAFE_SPECIAL_QUERY: ByteSet =
    ByteSet::alphanumeric_and(b":/?@!$&'()*+,;=-._~%").without(b'\'');

/// Bytes that stay unchanged in a user name or password: w3lib's `_USERINFO_SAFEST_CHARS`.
pub(super) static SAFE_USERINFO: ByteSet = ByteSet::alphanumeric_and(b"!$&'()*+,-._~");

/// Bytes that stay unchanged in a canonical path after decoding: w3lib's `_PATH_SAFE_CHARS`.
pub(super) static CANONICAL_PATH: ByteSet = ByteSet::alphanumeric_and(b":/?[]@!$&'()*+,;=-._~|%");

/// Bytes that stay unchanged in a canonical query after decoding: the unreserved characters of RFC
/// 3986.
pub(super) static UNRESERVED: ByteSet = ByteSet::alphanumeric_and(b"-._~");

/// Bytes that are their own canonical form in a query. A `+` stands for a space, in the original
/// query and in the canonical one.
pub(super) static PLAIN_QUERY: ByteSet = ByteSet::alphanumeric_and(b"-._~+");

/// Bytes that a scheme may have after its first letter.
pub(super) static SCHEME: ByteSet = ByteSet::alphanumeric_and(b"+-.");

/// Marks the bytes that are their own canonical form in a path: [`CANONICAL_PATH`] without `%`.
pub(super) fn plain_in_path(lanes: Lanes) -> Lanes {
    within(lanes, b'?', b'[')
        | within(lanes, b'a', b'z')
        | within(lanes, b'&', b';')
        | one_of(lanes, [b'=', b'_', b'!', b'$', b']', b'|', b'~'])
}

/// Marks letters, digits and `-._`, the characters of nearly all hosts. No rule escapes, decodes or
/// normalises any of these.
pub(super) fn plain_in_host(lanes: Lanes) -> Lanes {
    within(lanes, b'A', b'Z')
        | within(lanes, b'a', b'z')
        | within(lanes, b'0', b'9')
        | one_of(lanes, [b'-', b'.', b'_'])
}

/// Appends `text`, and percent-escapes every byte that is not in `safe`.
pub(super) fn push_quoted(text: &str, safe: &ByteSet, out: &mut String) {
    let mut rest = text;
    loop {
        let run = safe.run(rest.as_bytes());
        out.push_str(&rest[..run]);
        let Some(unsafe_char) = rest[run..].chars().next() else { return };
        let end = run + unsafe_char.len_utf8();
        for &byte in &rest.as_bytes()[run..end] {
            push_escape(byte, out);
        }
        rest = &rest[end..];
    }
}

/// Iterates over the bytes of `text`, with its percent-escapes decoded.
pub(crate) fn decoded(text: &str) -> impl Iterator<Item = u8> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let (byte, length) = match escape_at(bytes, at) {
            Some(byte) => (byte, 3),
            None => (*bytes.get(at)?, 1),
        };
        at += length;
        Some(byte)
    })
}

/// Appends one byte, and escapes it unless it is in `safe`.
pub(super) fn push_byte(byte: u8, safe: &ByteSet, out: &mut String) {
    if safe.has(byte) {
        out.push(char::from(byte));
    } else {
        push_escape(byte, out);
    }
}

/// Appends the percent-escape of a byte, in upper case.
pub(super) fn push_escape(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Decodes the percent-escape at `at`. Returns `None` if no complete escape begins there.
pub(super) fn escape_at(bytes: &[u8], at: usize) -> Option<u8> {
    match bytes.get(at..at + 3) {
        Some(&[b'%', high, low]) => {
            let (high, low) = (HEX_VALUE[usize::from(high)], HEX_VALUE[usize::from(low)]);
            ((high | low) < 16).then_some(high << 4 | low)
        }
        _ => None,
    }
}

/// Values of the ASCII hex digits, 255 for every other byte.
static HEX_VALUE: [u8; 256] = {
    let mut values = [255; 256];
    let mut value: u8 = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value as usize] as usize] = value;
        values[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    values
};
