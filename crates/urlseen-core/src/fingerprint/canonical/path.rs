//! Canonical form of the path.

use super::bytes::{
    CANONICAL_PATH, SAFE, escape_at, plain_in_path, push_byte, push_escape, push_quoted,
};
use super::rule::Rule;
use super::steps::Observer;
use crate::fingerprint::lanes;

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
pub(super) fn push_parameters(parameters: &str, out: &mut String) {
    if !parameters.is_empty() {
        out.push(';');
        push_quoted(parameters, &SAFE, out);
    }
}

/// Appends the canonical form of a path without parameters. Decodes all escapes except `%25 %2F %3B
/// %3F`, escapes all bytes that are not plain, and resolves dot segments. An empty path becomes
/// `/`. `spare` is working memory, and `rest` returns the text after the path.
///
/// If w3lib's `safe_url_string` has converted the path before, the result is the same: all escapes
/// that it adds are decoded here.
pub(super) fn push<'a>(
    path: &str,
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
        at += push_special(bytes, at, out);
        // Escapes often follow each other, and so do the bytes of a letter that is not ASCII.
        while let Some(b'%' | 0x80..) = bytes.get(at) {
            at += push_special(bytes, at, out);
        }
    }
    out.push_str(&path[at..]);
    observer.step(Rule::PathDecoded, || [out, rest()].concat());
    if out.len() == start {
        out.push('/');
        observer.step(Rule::EmptyPath, || [out, rest()].concat());
    }
    let path = &out.as_bytes()[start..];
    if path[0] == b'/' && lanes::any_pair(path, *b"/.") {
        remove_dot_segments(start, spare, out);
        observer.step(Rule::DotSegments, || [out, rest()].concat());
    }
}

/// Appends the canonical form of the percent-escape at `at`, or of the byte at `at` if that byte is
/// not plain. Returns the number of bytes that were read.
fn push_special(bytes: &[u8], at: usize, out: &mut String) -> usize {
    match (bytes[at], escape_at(bytes, at)) {
        // These delimiters stay escaped: a decoded delimiter would have another meaning.
        (_, Some(delimiter @ (b'%' | b'/' | b';' | b'?'))) => {
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
