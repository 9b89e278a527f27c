//! Part of a URL after the authority: its split, and the canonical forms of path and query.

use std::cmp::Ordering;

use super::escapes::{
    ByteSet, CANONICAL_PATH, PLAIN_QUERY, UNRESERVED, escape_at, plain_in_path, push_byte,
    push_escape, push_quoted,
};
use super::steps::{Observer, Rule};
use super::{CanonicalForm, TailBuffers};
use crate::lanes::{self, equal};

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

/// Splits a path at the first `;` of its last segment. Returns the path without parameters, and the
/// parameters. Only URLs with certain schemes have parameters.
pub(super) fn split_parameters(path: &str) -> (&str, &str) {
    if !lanes::any(path.as_bytes(), |lanes| lanes::equal(lanes, b';')) {
        return (path, "");
    }
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[last..].find(';') {
        Some(at) => (&path[..last + at], &path[last + at + 1..]),
        None => (path, ""),
    }
}

/// Appends parameters in the form that w3lib's `safe_url_string` gives them. Percent-escapes in the
/// parameters are not decoded.
pub(super) fn push_parameters(parameters: &str, safe: &ByteSet, out: &mut String) {
    if !parameters.is_empty() {
        out.push(';');
        push_quoted(parameters, safe, out);
    }
}

/// Appends the canonical form of a path without parameters. Decodes all escapes except `%25 %2F %3B
/// %3F`, escapes all bytes that are not plain, and resolves dot segments. An empty path becomes
/// `/`. `spare` is working memory, and `rest` returns the text after the path. w3lib 2.4 also
/// decodes `%25` and `%3B`, and keeps dot segments.
///
/// If w3lib's `safe_url_string` has converted the path before, the result is the same: all escapes
/// that it adds are decoded here.
pub(super) fn push_path<'a>(
    path: &str,
    form: CanonicalForm,
    spare: &mut String,
    out: &mut String,
    observer: &mut impl Observer,
    rest: impl Fn() -> &'a str,
) {
    let start = out.len();
    let bytes = path.as_bytes();
    let mut at = 0;
    while let Some(run) = lanes::position(&bytes[at..], |lanes| !plain_in_path(lanes)) {
        out.push_str(&path[at..at + run]);
        at += run;
        at += push_special(bytes, at, form, out);
        // Escapes often follow each other, and so do the bytes of a letter that is not ASCII.
        while let Some(b'%' | 0x80..) = bytes.get(at) {
            at += push_special(bytes, at, form, out);
        }
    }
    out.push_str(&path[at..]);
    observer.step(Rule::PathDecoded, || [out, rest()].concat());
    if out.len() == start {
        out.push('/');
        observer.step(Rule::EmptyPath, || [out, rest()].concat());
    }
    let path = &out.as_bytes()[start..];
    if path[0] == b'/' && lanes::any_pair(path, *b"/.") && !form.is_old() {
        remove_dot_segments(start, spare, out);
        observer.step(Rule::DotSegments, || [out, rest()].concat());
    }
}

/// Appends the canonical form of the percent-escape at `at`, or of the byte at `at` if that byte is
/// not plain. Returns the number of bytes that were read.
fn push_special(bytes: &[u8], at: usize, form: CanonicalForm, out: &mut String) -> usize {
    match (bytes[at], escape_at(bytes, at)) {
        // These delimiters stay escaped: a decoded delimiter would have another meaning.
        (_, Some(delimiter @ (b'%' | b'/' | b';' | b'?')))
            if !form.is_old() || matches!(delimiter, b'/' | b'?') =>
        {
            push_escape(delimiter, out);
            3
        }
        (_, Some(byte)) => {
            push_byte(byte, &CANONICAL_PATH, out);
            3
        }
        (b'%', None) => {
            out.push('%');
            1
        }
        (byte, None) => {
            push_escape(byte, out);
            1
        }
    }
}

/// Resolves the segments `.` and `..` of the path that begins with a slash at `start` (RFC 3986,
/// section 5.2.4). An empty segment counts as a segment.
fn remove_dot_segments(start: usize, spare: &mut String, out: &mut String) {
    spare.clear();
    spare.push_str(&out[start + 1..]);
    out.truncate(start);
    let mut segments = spare.split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => out.truncate(out[start..].rfind('/').map_or(start, |slash| start + slash)),
            _ => {
                out.push('/');
                out.push_str(segment);
                continue;
            }
        }
        if segments.peek().is_none() {
            out.push('/');
        }
    }
}

/// Positions of a field of the query in the output, where the field is in canonical form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    start: usize,
    /// Position of the `=` between key and value.
    equals: usize,
    end: usize,
}

/// Appends `?` and the canonical form of a query. The fields are decoded, sorted by their decoded
/// bytes (key, then value), and escaped again. Empty fields are removed. If no field is left,
/// nothing is appended. In w3lib 2.4, a `;` separates fields like a `&`.
///
/// Each field is first appended in canonical form, and compared with the field before it. If the
/// fields are not in order, they are sorted at the end.
pub(super) fn push_query(
    tail: &UrlTail<'_>,
    form: CanonicalForm,
    TailBuffers { spare, fields }: &mut TailBuffers,
    out: &mut String,
    observer: &mut impl Observer,
) {
    fields.clear();
    let start = out.len();
    let mut in_order = true;
    let mut rest = tail.query;
    let mut rule = Rule::EmptyFields;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('&') {
            rest = after;
            continue;
        }
        if form.is_old()
            && let Some(after) = rest.strip_prefix(';')
        {
            rest = after;
            rule = Rule::Semicolons;
            continue;
        }
        out.push(if fields.is_empty() { '?' } else { '&' });
        observer.step(rule, || [out, rest, tail.after_query()].concat());
        rule = Rule::EmptyFields;
        let (field, length) = push_field(rest, form, out);
        in_order &= fields.last().is_none_or(|last| compare(out, last, &field).is_le());
        fields.push(field);
        let (read, after) = rest.split_at(length);
        rest = after;
        observer.step(Rule::QueryDecoded, || {
            let added = usize::from(!read.contains('='));
            [&out[..out.len() - added], rest, tail.after_query()].concat()
        });
        observer.step(Rule::BlankValues, || [out, rest, tail.after_query()].concat());
    }
    let rule = if tail.query.is_empty() { Rule::EmptyQuery } else { Rule::EmptyFields };
    observer.step(rule, || [out, tail.after_query()].concat());
    if !in_order {
        sort(start, fields, spare, out);
        observer.step(Rule::QuerySorted, || [out, tail.after_query()].concat());
    }
}

/// Appends the canonical form of the first field of `text`. The field ends before the first
/// separator, or at the end of `text`. Returns the field, and its length in `text`.
#[expect(clippy::inline_always, reason = "explain has a second copy of the only caller")]
#[inline(always)]
fn push_field(text: &str, form: CanonicalForm, out: &mut String) -> (Field, usize) {
    let bytes = text.as_bytes();
    let start = out.len();
    let mut equals = None;
    let mut at = 0;
    while at < bytes.len() {
        let run = PLAIN_QUERY.run(&bytes[at..]);
        if run > 0 {
            out.push_str(&text[at..at + run]);
            at += run;
            continue;
        }
        match bytes[at] {
            b'&' => break,
            b';' if form.is_old() => break,
            b'=' if equals.is_none() => {
                equals = Some(out.len());
                out.push('=');
                at += 1;
            }
            byte => {
                let escape = escape_at(bytes, at);
                push_decoded(escape.unwrap_or(byte), out);
                at += if escape.is_some() { 3 } else { 1 };
            }
        }
    }
    let equals = equals.unwrap_or_else(|| {
        out.push('=');
        out.len() - 1
    });
    (Field { start, equals, end: out.len() }, at)
}

/// Appends a decoded byte in its canonical form.
fn push_decoded(byte: u8, out: &mut String) {
    match byte {
        b' ' => out.push('+'),
        _ if UNRESERVED.has(byte) => out.push(char::from(byte)),
        _ => push_escape(byte, out),
    }
}

/// Compares two fields by their decoded keys, then by their decoded values.
fn compare(text: &str, one: &Field, other: &Field) -> Ordering {
    let bytes = text.as_bytes();
    compare_decoded(&bytes[one.start..one.equals], &bytes[other.start..other.equals]).then_with(
        || compare_decoded(&bytes[one.equals + 1..one.end], &bytes[other.equals + 1..other.end]),
    )
}

/// Compares the decoded bytes of two texts in canonical form. Only the first different byte is
/// decoded, because the texts are equal before that byte.
fn compare_decoded(one: &[u8], other: &[u8]) -> Ordering {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (Some(&a), Some(&b)) = (one.get(same), other.get(same)) else {
        return one.len().cmp(&other.len());
    };
    // Inside an escape, hex digits have the same order as the encoded bytes.
    let in_escape = one[same.saturating_sub(2)..same].contains(&b'%');
    if in_escape { a.cmp(&b) } else { decoded_at(one, same).cmp(&decoded_at(other, same)) }
}

/// Returns the decoded byte at `at` in a text in canonical form.
fn decoded_at(text: &[u8], at: usize) -> u8 {
    match text[at] {
        b'+' => b' ',
        byte => escape_at(text, at).unwrap_or(byte),
    }
}

/// Sorts the fields that are in `out` from `start` on.
#[inline]
fn sort(start: usize, fields: &mut [Field], spare: &mut String, out: &mut String) {
    fields.sort_unstable_by(|one, other| compare(out, one, other));
    spare.clear();
    spare.push_str(&out[start..]);
    out.truncate(start);
    let mut delimiter = '?';
    for field in fields {
        out.push(delimiter);
        out.push_str(&spare[field.start - start..field.end - start]);
        delimiter = '&';
    }
}
