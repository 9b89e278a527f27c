//! Reader for the replies to `SSCAN` (members of a set). The strings of a reply stay in the receive
//! buffer.

use std::ops::Range;

use super::reply::ReplyPlaces;

/// Reads a page of a scan: the cursor of the next page (0 after the last page) and the positions of
/// the members. Returns `None` for any other reply.
pub(super) fn page(reply: &[u8], places: ReplyPlaces) -> Option<(u64, Vec<Range<usize>>)> {
    let ReplyPlaces { mut strings, arrays } = places;
    let [whole, members] = &arrays[..] else { return None };
    if (whole.len, members.strings) != (2, 1) {
        return None;
    }
    let cursor = strings.remove(0);
    Some((std::str::from_utf8(&reply[cursor]).ok()?.parse().ok()?, strings))
}

#[cfg(test)]
mod tests {
    use super::super::reply::ReplyScan;
    use super::*;

    fn places(reply: &[u8]) -> Option<ReplyPlaces> {
        ReplyScan::default().advance(reply).ok()??.places
    }

    fn page(reply: &[u8]) -> Option<(u64, Vec<Range<usize>>)> {
        super::page(reply, places(reply)?)
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
