//! Reader that finds the end of a reply and the strings in the reply, so that items stay in the
//! receive buffer. The reader finds only arrays and strings of the Redis protocol (RESP2). The
//! `redis` crate reads the content of all other replies.
//!
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

use std::ops::Range;

/// Longest accepted string. `proto-max-bulk-len` is 512 MB by default, and can be raised.
const STRING_MAX: usize = 1 << 32;

/// Maximum number of elements of an array: a Redis list cannot hold more.
const ARRAY_MAX: usize = 1 << 32;

/// Deepest accepted nesting of arrays. Replies to the commands used here have at most two levels.
const DEPTH_MAX: usize = 8;

/// Longest accepted line, in bytes. A line is a length, a number, or an error with the whole
/// message of a script.
const LINE_MAX: usize = 64 << 10;

/// Maximum number of elements for which memory is reserved before they arrive. A faulty server can
/// announce any number.
const RESERVE_MAX: usize = 100_000;

/// Error for bytes that are not a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} of a reply")]
pub(super) struct ReplyError {
    what: &'static str,
    at: usize,
}

/// Progress of reading a reply that arrives in pieces. No complete element is read twice.
#[derive(Debug, Default)]
pub(super) struct ReplyScan {
    /// Position of the next element.
    at: usize,
    /// Number of elements that are still missing in each incomplete array, from the outermost to
    /// the innermost.
    missing: Vec<usize>,
    /// Positions of the strings and arrays so far. Used only while `is_mixed` is false.
    places: ReplyPlaces,
    /// True if the bytes read so far show that the reply is not an array of strings and arrays.
    is_mixed: bool,
}

/// Positions of the parts of a reply that is an array of strings and arrays.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyPlaces {
    pub(super) strings: Vec<Range<usize>>,
    pub(super) arrays: Vec<ArrayPlace>,
}

/// Position of an array in a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArrayPlace {
    /// Position of the first byte of the array.
    pub(super) at: usize,
    /// Number of strings before the array.
    pub(super) strings: usize,
    /// Number of elements of the array.
    pub(super) len: usize,
}

/// Complete reply, found in the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Length of the reply in bytes.
    pub(super) len: usize,
    /// Positions of the parts, if the reply is an array of strings and arrays only.
    pub(super) places: Option<ReplyPlaces>,
}

/// First line of an element.
struct ReplyLine<'a> {
    kind: u8,
    rest: &'a [u8],
    /// Position of the first byte after this line.
    behind: usize,
}

impl ReplyScan {
    /// Continues to read a reply. `bytes` are all bytes of the reply that have arrived, at least as
    /// many as in the call before. Returns `None` until the reply is complete. The call after a
    /// complete reply begins a new reply.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<Option<Frame>, ReplyError> {
        loop {
            // Nearly all content is short strings.
            if let Some((len, behind)) = short_string(&bytes[self.at..]) {
                let behind = self.at + behind;
                self.at = match bytes.get(behind + len..behind + len + 2) {
                    Some(b"\r\n") => self.string(behind..behind + len),
                    Some(_) => return Err(self.malformed("a string that does not end")),
                    None => return Ok(None),
                };
                if let Some(frame) = self.frame() {
                    return Ok(Some(frame));
                }
                continue;
            }
            let Some(ReplyLine { kind, rest, behind }) = self.line(bytes)? else { return Ok(None) };
            self.at = match kind {
                b'$' => match self.length(rest, STRING_MAX)? {
                    Some(len) => match bytes.get(behind + len..behind + len + 2) {
                        Some(b"\r\n") => self.string(behind..behind + len),
                        Some(_) => return Err(self.malformed("a string that does not end")),
                        None => return Ok(None),
                    },
                    None => self.other(behind),
                },
                b'*' => match self.length(rest, ARRAY_MAX)? {
                    Some(1..) if self.missing.len() == DEPTH_MAX => {
                        return Err(self.malformed("an array nested too deeply"));
                    }
                    Some(len) => {
                        self.at = self.array(len, behind);
                        if len > 0 {
                            continue;
                        }
                        behind
                    }
                    None => self.other(behind),
                },
                b'+' | b'-' | b':' => self.other(behind),
                _ => return Err(self.malformed("an unknown type of element")),
            };
            if let Some(frame) = self.frame() {
                return Ok(Some(frame));
            }
        }
    }

    /// Counts an element that was read. Returns the reply if that was the last element.
    #[inline]
    fn frame(&mut self) -> Option<Frame> {
        while let Some(missing) = self.missing.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return None;
            }
            self.missing.pop();
        }
        let Self { at: len, places, is_mixed, .. } = std::mem::take(self);
        Some(Frame { len, places: (!is_mixed).then_some(places) })
    }

    /// Records a string. Returns the position after it.
    #[inline]
    fn string(&mut self, place: Range<usize>) -> usize {
        let behind = place.end + 2;
        self.is_mixed |= self.missing.is_empty();
        if !self.is_mixed {
            self.places.strings.push(place);
        }
        behind
    }

    /// Records an array of `len` elements, which begin at `behind`.
    fn array(&mut self, len: usize, behind: usize) -> usize {
        if !self.is_mixed {
            let ReplyPlaces { strings, arrays } = &mut self.places;
            arrays.push(ArrayPlace { at: self.at, strings: strings.len(), len });
            strings.reserve(len.min(RESERVE_MAX));
        }
        if len > 0 {
            self.missing.push(len);
        }
        behind
    }

    /// Records an element that ends at `behind` and is neither a string nor an array.
    fn other(&mut self, behind: usize) -> usize {
        self.is_mixed = true;
        behind
    }

    /// Returns the first line of the next element. Returns `None` if the line is not complete.
    #[inline]
    fn line<'a>(&self, bytes: &'a [u8]) -> Result<Option<ReplyLine<'a>>, ReplyError> {
        let rest = &bytes[self.at..];
        let within = &rest[..rest.len().min(LINE_MAX)];
        let Some(feed) = memchr::memchr(b'\n', within) else {
            return if within.len() < LINE_MAX { Ok(None) } else { Err(self.malformed("no line")) };
        };
        match &within[..feed] {
            [kind, rest @ .., b'\r'] => {
                Ok(Some(ReplyLine { kind: *kind, rest, behind: self.at + feed + 1 }))
            }
            _ => Err(self.malformed("no line")),
        }
    }

    /// Reads a length. Returns `None` for -1, which means null.
    #[inline]
    fn length(&self, line: &[u8], max: usize) -> Result<Option<usize>, ReplyError> {
        if line == b"-1" {
            return Ok(None);
        }
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
        // Numbers of up to 19 digits fit into 64 bits.
        let digits = Some(line).filter(|line| (1..=19).contains(&line.len()));
        let number = digits.and_then(|digits| {
            digits.iter().map(digit).try_fold(0, |number, digit| Some(number * 10 + digit?))
        });
        match number.filter(|&number| number <= max) {
            Some(number) => Ok(Some(number)),
            None => Err(self.malformed("no length")),
        }
    }

    fn malformed(&self, what: &'static str) -> ReplyError {
        ReplyError { what, at: self.at }
    }
}

/// Finds the length and the start of a string of less than a million bytes, if a string is next.
#[inline]
fn short_string(bytes: &[u8]) -> Option<(usize, usize)> {
    let digits = bytes.strip_prefix(b"$")?;
    let mut len = 0;
    for (index, &byte) in digits.iter().enumerate().take(7) {
        match byte {
            b'0'..=b'9' if index < 6 => len = len * 10 + usize::from(byte - b'0'),
            b'\r' if index > 0 && digits.get(index + 1) == Some(&b'\n') => {
                return Some((len, index + 3));
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redis::Value;

    use super::*;

    /// Reads one reply that arrives in steps of `step` bytes.
    fn read(bytes: &[u8], step: usize) -> Result<Option<Frame>, ReplyError> {
        let mut scan = ReplyScan::default();
        let steps = (0..bytes.len()).step_by(step).chain([bytes.len()]);
        for there in steps {
            if let Some(frame) = scan.advance(&bytes[..there])? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    #[test]
    fn strings_are_found_for_any_split_into_pieces() {
        let bytes = b"*3\r\n$3\r\nabc\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n+next";
        for step in [1, 2, 7, bytes.len()] {
            let frame = read(bytes, step).unwrap().unwrap();
            let strings = frame.places.unwrap().strings;
            let found: Vec<_> = strings.into_iter().map(|place| &bytes[place]).collect();
            assert_eq!(found, [&b"abc"[..], b"", b"\r\n$1"]);
            assert_eq!(&bytes[frame.len..], b"+next");
        }
    }

    #[test]
    fn only_an_array_of_strings_and_arrays_has_places() {
        for (reply, is_one) in [
            ("*0\r\n", true),
            ("*1\r\n$1\r\na\r\n", true),
            ("*-1\r\n", false),
            ("$1\r\na\r\n", false),
            ("$-1\r\n", false),
            ("*2\r\n$1\r\na\r\n:1\r\n", false),
            ("*2\r\n$1\r\na\r\n$-1\r\n", false),
            ("*2\r\n$1\r\na\r\n*0\r\n", true),
            ("*1\r\n*1\r\n$1\r\na\r\n", true),
            ("*2\r\n*1\r\n$1\r\na\r\n:1\r\n", false),
            ("+OK\r\n", false),
            ("-ERR no\r\n", false),
        ] {
            let frame = read(reply.as_bytes(), 1).unwrap().unwrap();
            assert_eq!((frame.len, frame.places.is_some()), (reply.len(), is_one), "{reply:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_reply_are_refused() {
        let nested = "*1\r\n".repeat(DEPTH_MAX + 1);
        let endless = "+".repeat(LINE_MAX);
        for (bytes, at) in [
            ("HTTP/1.1 400 Bad Request\r\n", 0),
            ("+OK\n", 0),
            ("\r\n", 0),
            ("$1\r\nab\r\n", 0),
            ("*2\r\n:1\r\n$x\r\n", 8),
            ("$-2\r\n", 0),
            ("$\r\n", 0),
            ("$99999999999\r\n", 0),
            ("*99999999999999999999\r\n", 0),
            (&nested, 4 * DEPTH_MAX),
            (&endless, 0),
        ] {
            assert_eq!(read(bytes.as_bytes(), 1).unwrap_err().at, at, "{bytes:?}");
        }
    }

    /// Generates replies as a server writes them.
    fn replies() -> impl Strategy<Value = Vec<u8>> {
        let string =
            |bytes: Vec<u8>| [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
        let leaf = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20).prop_map(string),
            any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
            "[+][A-Z a-z]{0,9}\r\n".prop_map(String::into_bytes),
            "-[A-Z]{1,9} [a-z]{0,9}\r\n".prop_map(String::into_bytes),
            Just(b"$-1\r\n".to_vec()),
            Just(b"*-1\r\n".to_vec()),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop::collection::vec(inner, 0..6).prop_map(|elements| {
                [format!("*{}\r\n", elements.len()).into_bytes(), elements.concat()].concat()
            })
        })
    }

    proptest! {
        /// Both this reader and the crate read the same bytes as one reply, and find the same
        /// strings.
        #[test]
        fn replies_end_at_the_same_byte_as_in_the_crate(reply in replies(), step in 1usize..40) {
            let more = [&reply[..], b"$5\r\n"].concat();
            let frame = read(&more, step).unwrap().unwrap();
            prop_assert_eq!(frame.len, reply.len());
            let strings = match redis::parse_redis_value(&reply).unwrap() {
                Value::Array(values) => values
                    .into_iter()
                    .map(|value| match value {
                        Value::BulkString(bytes) => Some(bytes),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>(),
                _ => None,
            };
            let flat = frame.places.filter(|places| places.arrays.len() == 1);
            let found = flat.map(|places| {
                places.strings.into_iter().map(|place| reply[place].to_vec()).collect::<Vec<_>>()
            });
            prop_assert_eq!(found, strings);
        }

        /// The reader accepts or refuses any bytes in the same way, however they are split into
        /// pieces. All strings that it finds lie within the reply.
        #[test]
        fn any_bytes_are_read_the_same_for_any_split(
            bytes in "([$*:+-][0-9-]{0,3}(\r\n|\n|\r)?[a-z$*]{0,4}(\r\n)?){0,12}",
            step in 1usize..9,
        ) {
            let found = read(bytes.as_bytes(), step);
            prop_assert_eq!(&found, &read(bytes.as_bytes(), bytes.len().max(1)));
            if let Ok(Some(frame)) = found {
                prop_assert!(frame.len <= bytes.len());
                let strings = frame.places.unwrap_or_default().strings;
                prop_assert!(strings.iter().all(|place| place.end <= frame.len));
            }
        }
    }
}
