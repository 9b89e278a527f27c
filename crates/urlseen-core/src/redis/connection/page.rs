//! Readers for the replies to `SSCAN` (members of a set) and `XRANGE` (entries of a stream). The
//! strings of a reply stay in the receive buffer.

use std::ops::Range;

use bytes::Bytes;

use super::reply::Places;

/// Reads a page of a scan: the cursor of the next page (0 after the last page) and the positions of
/// the members. Returns `None` for any other reply.
pub(super) fn page(reply: &[u8], places: Places) -> Option<(u64, Vec<Range<usize>>)> {
    let Places { mut strings, arrays } = places;
    let [whole, members] = &arrays[..] else { return None };
    if (whole.len, members.strings) != (2, 1) {
        return None;
    }
    let cursor = strings.remove(0);
    Some((std::str::from_utf8(&reply[cursor]).ok()?.parse().ok()?, strings))
}

/// Entries of a reply to `XRANGE`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Bytes that contain the values.
    pub bytes: Bytes,
    /// Ids of the entries. The upper 64 bits are the part before the `-`, the time in milliseconds.
    /// The lower 64 bits are the part after it.
    pub ids: Vec<u128>,
    /// Position of the value of each entry; empty if the entry lacks the field.
    pub values: Vec<Range<usize>>,
    /// Number of bytes of the largest entry, with all of its fields.
    pub largest: usize,
}

/// Reads the entries of a stream. For each entry, finds the value of its first field with the name
/// `field`. Returns `None` for any other reply.
pub(super) fn entries(reply: Bytes, places: &Places, field: &[u8]) -> Option<Entries> {
    let Places { strings, arrays } = places;
    let (whole, arrays) = arrays.split_first()?;
    let (pairs, rest) = arrays.as_chunks();
    if pairs.len() != whole.len || !rest.is_empty() {
        return None;
    }
    let ends = pairs.iter().skip(1).map(|[entry, _]| entry.at).chain([reply.len()]);
    let mut all = Entries::default();
    for ([entry, fields], end) in pairs.iter().zip(ends) {
        if (entry.len, fields.strings) != (2, entry.strings + 1) {
            return None;
        }
        all.ids.push(entry_id(&reply[strings[entry.strings].clone()])?);
        let (fields, _) = strings.get(fields.strings..)?.get(..fields.len)?.as_chunks();
        let found = fields.iter().find(|[name, _]| &reply[name.clone()] == field);
        all.values.push(found.map_or(0..0, |[_, value]| value.clone()));
        all.largest = all.largest.max(end - entry.at);
    }
    Some(Entries { bytes: reply, ..all })
}

fn entry_id(text: &[u8]) -> Option<u128> {
    let (milliseconds, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
    let part = |text: &str| text.parse::<u64>().ok().map(u128::from);
    Some(part(milliseconds)? << 64 | part(number)?)
}

#[cfg(test)]
mod tests {
    use super::super::reply::ReplyScan;
    use super::*;

    fn places(reply: &[u8]) -> Option<Places> {
        ReplyScan::default().advance(reply).ok()??.places
    }

    fn page(reply: &[u8]) -> Option<(u64, Vec<Range<usize>>)> {
        super::page(reply, places(reply)?)
    }

    fn entries(reply: &[u8], field: &[u8]) -> Option<Entries> {
        super::entries(Bytes::copy_from_slice(reply), &places(reply)?, field)
    }

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
        assert_eq!(found.ids, ids);
        let values: Vec<_> = found.values.iter().map(|value| &reply[value.clone()]).collect();
        assert_eq!(values, [&b"xy"[..], b"", b""]);
        assert_eq!(found.largest, 51);
        assert_eq!(entries(b"*0\r\n", b"u").map(|found| found.ids), Some(Vec::new()));
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
            "*2\r\n*1\r\n$1\r\na\r\n$1\r\n1\r\n",
            "*1\r\n$1\r\n1\r\n",
            "+OK\r\n",
        ] {
            assert_eq!(page(reply.as_bytes()), None, "{reply:?}");
        }
    }
}
