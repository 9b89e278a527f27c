//! Page of a scan: the reply to `SSCAN`. Its members stay in the buffer that received them.

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
