//! Replies with more than strings in them, which stay in the buffer that received them: a page of
//! a scan (`SSCAN`), and entries of a stream (`XRANGE`).

use std::ops::Range;

/// Reads a complete reply to `SSCAN`: the cursor of the next page (0 after the last one) and the
/// positions of the members. Returns `None` for any other reply.
pub fn page(reply: &[u8]) -> Option<(u64, Vec<Range<usize>>)> {
    let mut at = 0;
    if length(reply, &mut at, b'*')? != 2 {
        return None;
    }
    let cursor = std::str::from_utf8(&reply[string(reply, &mut at)?]).ok()?.parse().ok()?;
    let count = length(reply, &mut at, b'*')?;
    // Each member takes more than four bytes.
    let mut members = Vec::with_capacity(count.min(reply.len() / 4));
    for _ in 0..count {
        members.push(string(reply, &mut at)?);
    }
    (at == reply.len()).then_some((cursor, members))
}

/// An entry of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its id: milliseconds, then the number in the lower half.
    pub(super) id: u128,
    /// The value of the field that was asked for; nothing where there is none.
    pub(super) value: Range<usize>,
    /// How many bytes the whole entry has.
    pub(super) size: usize,
}

/// The entries in a reply to `XRANGE` that is all there, with what is in the first field of this
/// name; `None` if it is something else.
pub(super) fn entries(reply: &[u8], field: &[u8]) -> Option<Vec<Entry>> {
    let mut at = 0;
    let count = length(reply, &mut at, b'*')?;
    // Each takes more bytes than this.
    let mut entries = Vec::with_capacity(count.min(reply.len() / 16));
    for _ in 0..count {
        let begin = at;
        if length(reply, &mut at, b'*')? != 2 {
            return None;
        }
        let id = entry_id(&reply[string(reply, &mut at)?])?;
        let (mut value, mut is_found) = (0..0, false);
        for _ in 0..length(reply, &mut at, b'*')? / 2 {
            let (name, found) = (string(reply, &mut at)?, string(reply, &mut at)?);
            if !is_found && &reply[name] == field {
                (value, is_found) = (found, true);
            }
        }
        entries.push(Entry { id, value, size: at - begin });
    }
    (at == reply.len()).then_some(entries)
}

fn entry_id(text: &[u8]) -> Option<u128> {
    let (milliseconds, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
    let part = |text: &str| text.parse::<u64>().ok().map(u128::from);
    Some(part(milliseconds)? << 64 | part(number)?)
}

/// Finds the string that begins at `at`, and moves `at` past it.
#[inline]
fn string(reply: &[u8], at: &mut usize) -> Option<Range<usize>> {
    let len = length(reply, at, b'$')?;
    let place = *at..at.checked_add(len)?;
    *at = place.end.checked_add(2)?;
    (reply.get(place.end..*at)? == b"\r\n").then_some(place)
}

/// Reads the length in the line of this kind that begins at `at`, and moves `at` past the line.
#[inline]
fn length(reply: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let digits = reply.get(*at..)?.strip_prefix(&[kind])?;
    let mut len: usize = 0;
    for (index, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => len = len.checked_mul(10)?.checked_add(usize::from(byte - b'0'))?,
            b'\r' if index > 0 && digits.get(index + 1) == Some(&b'\n') => {
                *at += index + 3;
                return Some(len);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_cursor_and_members() {
        let reply = b"*2\r\n$2\r\n17\r\n*3\r\n$1\r\na\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n";
        let (cursor, members) = page(reply).unwrap();
        let members: Vec<_> = members.into_iter().map(|member| &reply[member]).collect();
        assert_eq!((cursor, members), (17, vec![&b"a"[..], b"", b"\r\n$1"]));
        assert_eq!(page(b"*2\r\n$1\r\n0\r\n*0\r\n"), Some((0, Vec::new())));
        let last = b"*2\r\n$20\r\n18446744073709551615\r\n*0\r\n";
        assert_eq!(page(last), Some((u64::MAX, Vec::new())));
    }

    #[test]
    fn an_entry_has_an_id_and_the_first_value_of_the_field() {
        let reply = b"*3\r\n*2\r\n$3\r\n1-0\r\n*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nu\r\n$2\r\nxy\r\n\
                      *2\r\n$22\r\n18446744073709551615-2\r\n*2\r\n$1\r\nv\r\n$1\r\nz\r\n\
                      *2\r\n$3\r\n9-9\r\n*4\r\n$1\r\nu\r\n$0\r\n\r\n$1\r\nu\r\n$1\r\nq\r\n";
        let found = entries(reply, b"u").unwrap();
        let ids = [1 << 64, u128::from(u64::MAX) << 64 | 2, 9 << 64 | 9];
        assert_eq!(found.iter().map(|entry| entry.id).collect::<Vec<_>>(), ids);
        let values: Vec<_> = found.iter().map(|entry| &reply[entry.value.clone()]).collect();
        assert_eq!(values, [&b"xy"[..], b"", b""]);
        assert_eq!(found.iter().map(|entry| entry.size).sum::<usize>(), reply.len() - 4);
        assert_eq!(entries(b"*0\r\n", b"u"), Some(Vec::new()));
        for end in 0..reply.len() {
            assert_eq!(entries(&reply[..end], b"u"), None, "{end} bytes");
        }
        assert_eq!(entries(b"*1\r\n*2\r\n$1\r\n1\r\n*0\r\n", b"u"), None);
    }

    #[test]
    fn any_other_reply_is_refused() {
        let reply = &b"*2\r\n$2\r\n17\r\n*1\r\n$1\r\na\r\n"[..];
        assert!(page(reply).is_some());
        for end in 0..reply.len() {
            assert_eq!(page(&reply[..end]), None, "{end} bytes");
        }
        for reply in [
            "*2\r\n$1\r\na\r\n*0\r\n",
            "*3\r\n$1\r\n1\r\n*0\r\n*0\r\n",
            "*2\r\n$1\r\n1\r\n$0\r\n\r\n",
            "*2\r\n$1\r\n1\r\n*1\r\n:1\r\n",
            "*2\r\n$1\r\n1\r\n*99999999999999999999\r\n",
            "*2\r\n$1\r\n1\r\n*1\r\n$18446744073709551615\r\na\r\n",
            "*2\r\n$1\r\n1\r\n*0\r\n+",
            "+OK\r\n",
        ] {
            assert_eq!(page(reply.as_bytes()), None, "{reply:?}");
        }
    }
}
