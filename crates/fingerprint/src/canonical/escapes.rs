//! Percent-escapes, and for each part of a URL the set of bytes that w3lib does not escape there.

use crate::lanes::{Lanes, one_of, within};

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
