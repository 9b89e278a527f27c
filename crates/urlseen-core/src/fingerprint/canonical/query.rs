//! Canonical form of the query.

use std::cmp::Ordering;

use super::TailBuffers;
use super::bytes::{PLAIN_QUERY, UNRESERVED, escape_at, push_escape};
use super::rule::Rule;
use super::split::UrlTail;
use super::steps::Observer;

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
/// nothing is appended.
///
/// Each field is first appended in canonical form, and compared with the field before it. If the
/// fields are not in order, they are sorted at the end.
pub(super) fn push(
    tail: &UrlTail<'_>,
    TailBuffers { spare, fields }: &mut TailBuffers,
    out: &mut String,
    observer: &mut impl Observer,
) {
    fields.clear();
    let start = out.len();
    let mut in_order = true;
    let mut rest = tail.query;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('&') {
            rest = after;
            continue;
        }
        out.push(if fields.is_empty() { '?' } else { '&' });
        observer.step(Rule::EmptyFields, || [out, rest, tail.after_query()].concat());
        let (field, length) = push_field(rest, out);
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

/// Appends the canonical form of the first field of `text`. The field ends before the first `&`, or
/// at the end of `text`. Returns the field, and its length in `text`.
#[expect(clippy::inline_always, reason = "explain has a second copy of the only caller")]
#[inline(always)]
fn push_field(text: &str, out: &mut String) -> (Field, usize) {
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
