//! Replies whose strings stay in the buffer that received them: a list, a page of a scan (`SSCAN`),
//! and entries of a stream (`XRANGE`).

use std::ops::Range;

use super::reply::{ArrayPlace, Places};

/// Reads a page of a scan: the cursor of the next page (0 after the last one) and the positions of
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

/// Entry of a stream in a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Id of the entry: milliseconds, then the number in the lower half.
    pub(super) id: u128,
    /// Value of the field that the caller asked for; empty if there is none.
    pub(super) value: Range<usize>,
    /// Number of bytes of the whole entry.
    pub(super) size: usize,
}

/// Reads the entries of a stream, with the value of the first field of this name. Returns `None`
/// for any other reply.
pub(super) fn entries(reply: &[u8], places: &Places, field: &[u8]) -> Option<Vec<Entry>> {
    let Places { strings, arrays } = places;
    let (whole, arrays) = arrays.split_first()?;
    let (pairs, rest) = arrays.as_chunks();
    if pairs.len() != whole.len || !rest.is_empty() {
        return None;
    }
    let ends = pairs.iter().skip(1).map(|[entry, _]| entry.at).chain([reply.len()]);
    let entry = |([entry, fields], end): (&[ArrayPlace; 2], usize)| {
        if (entry.len, fields.strings) != (2, entry.strings + 1) {
            return None;
        }
        let id = entry_id(&reply[strings[entry.strings].clone()])?;
        let (fields, _) = strings.get(fields.strings..)?.get(..fields.len)?.as_chunks();
        let found = fields.iter().find(|[name, _]| &reply[name.clone()] == field);
        let value = found.map_or(0..0, |[_, value]| value.clone());
        Some(Entry { id, value, size: end - entry.at })
    };
    pairs.iter().zip(ends).map(entry).collect()
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

    fn entries(reply: &[u8], field: &[u8]) -> Option<Vec<Entry>> {
        super::entries(reply, &places(reply)?, field)
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
            "*2\r\n*1\r\n$1\r\na\r\n$1\r\n1\r\n",
            "*1\r\n$1\r\n1\r\n",
            "+OK\r\n",
        ] {
            assert_eq!(page(reply.as_bytes()), None, "{reply:?}");
        }
    }
}
