//! The canonical path.

use super::bytes::{
    CANONICAL_PATH, SAFE, escape_at, plain_in_path, push_byte, push_escape, push_quoted,
};
use crate::fingerprint::lanes;

/// Cuts the parameters of the last segment off a path; only some schemes have them.
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

/// Appends parameters, made safe but neither decoded nor resolved.
pub(super) fn push_parameters(parameters: &str, out: &mut String) {
    if !parameters.is_empty() {
        out.push(';');
        push_quoted(parameters, &SAFE, out);
    }
}

/// Appends a path without its parameters: decoded but for `%25 %2F %3B %3F`, escaped again, its dot
/// segments resolved; `/` for an empty one. `spare` is room to work in.
///
/// Making the path safe first would change nothing: what that escapes is decoded here.
pub(super) fn push(path: &str, spare: &mut String, out: &mut String) {
    let start = out.len();
    let bytes = path.as_bytes();
    let mut at = 0;
    while let Some(run) = lanes::position(&bytes[at..], |lanes| !plain_in_path(lanes)) {
        out.push_str(&path[at..at + run]);
        at += run;
        at += push_special(bytes, at, out);
        // Escapes come in rows, and letters that are not ASCII in bytes that are to stay together.
        while let Some(b'%' | 0x80..) = bytes.get(at) {
            at += push_special(bytes, at, out);
        }
    }
    out.push_str(&path[at..]);
    if out.len() == start {
        out.push('/');
    }
    let path = &out.as_bytes()[start..];
    if path[0] == b'/' && lanes::any_pair(path, *b"/.") {
        remove_dot_segments(start, spare, out);
    }
}

/// Appends what stands for a byte that is not plain, or for an escape; returns how many bytes that
/// was.
fn push_special(bytes: &[u8], at: usize, out: &mut String) -> usize {
    match (bytes[at], escape_at(bytes, at)) {
        // Decoded, these would mean something else.
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

/// Resolves `.` and `..` in the path that begins at `start` with a slash: RFC 3986, section 5.2.4.
/// Empty segments count.
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
