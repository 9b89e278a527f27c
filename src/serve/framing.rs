//! Where one command ends and the next begins, in the bytes that a client sends.
//!
//! Both versions of the protocol have commands alike: an array of bulk strings, or a line of words
//! ("inline"). What is no such thing, or larger than it may be, is found out as soon as it can be
//! told, in Redis's own words, so that nobody can make the daemon keep what it will not read. Only
//! what is whole goes to the protocol crate, which would follow nested arrays down to the end of
//! the stack.

use std::ops::Range;

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::{http, inline};

/// The longest line: of an inline command, and of a length.
const LINE_MAX: usize = 64 << 10;
const LENGTH_MAX: usize = 32;

/// What a client may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramingLimits {
    /// Bytes of a command.
    pub(super) bytes: usize,
    /// Words of a command.
    pub(super) words: usize,
}

impl FramingLimits {
    /// What somebody may send who has not given the password, as Redis has it.
    pub(super) const STRANGER: Self = Self { bytes: 16 << 10, words: 10 };
}

/// A command, as far as its words go.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Framed {
    /// Its words; none for an empty line, which Redis passes over.
    pub(super) words: Words,
    /// Bytes that it takes.
    pub(super) len: usize,
}

/// The words of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// Where they are in what was received.
    Here(Vec<Range<usize>>),
    /// Those of a line, quotes and escapes resolved.
    Line(Vec<Vec<u8>>),
}

/// Bytes that are no command: the connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramingError {
    /// In Redis's own words.
    #[error("Protocol error: {0}")]
    Protocol(String),
    /// The client takes this for a server of HTTP.
    #[error("HTTP")]
    Http,
}

/// Finds commands; keeps in mind how far it came with one that is not all there.
#[derive(Debug, Default)]
pub(super) struct Framing {
    /// Words that are not there yet, and where the next of them begins; of an array that has begun.
    begun: Option<(usize, usize)>,
}

impl Framing {
    /// The command at the beginning of `bytes`, once it is all there. Until then it is asked again
    /// with the same bytes and more.
    pub(super) fn next(
        &mut self,
        bytes: &[u8],
        limits: FramingLimits,
    ) -> Result<Option<Framed>, FramingError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        if self.begun.is_none() && first != b'*' {
            return line(bytes, limits);
        }
        let Some(len) = self.array_len(bytes, limits)? else { return Ok(None) };
        self.begun = None;
        if bytes[1] == b'-' {
            // Less than no words are passed over, as Redis does.
            return Ok(Some(Framed { words: Words::Here(Vec::new()), len }));
        }
        let words = match decode_range(&bytes[..len]) {
            Ok(Some((RangeFrame::Array(words), _))) => words,
            other => {
                return Err(FramingError::Protocol(format!(
                    "not an array of bulk strings: {other:?}"
                )));
            }
        };
        let words = words.into_iter().map(|word| match word {
            RangeFrame::BulkString((from, to)) => Ok(from..to),
            _ => Err(FramingError::Protocol("invalid bulk length".to_owned())),
        });
        Ok(Some(Framed { words: Words::Here(words.collect::<Result<_, _>>()?), len }))
    }

    /// How long the array is that `bytes` begins with, once it is all there.
    fn array_len(
        &mut self,
        bytes: &[u8],
        limits: FramingLimits,
    ) -> Result<Option<usize>, FramingError> {
        let (mut left, mut at) = if let Some(begun) = self.begun {
            begun
        } else {
            let Some((words, at)) = length(bytes, 0, "mbulk count")? else { return Ok(None) };
            let most = i64::try_from(limits.words).unwrap_or(i64::MAX);
            if words > most {
                return Err(FramingError::Protocol("invalid multibulk length".to_owned()));
            }
            // Less than none is none, as Redis has it.
            (usize::try_from(words).unwrap_or(0), at)
        };
        while left > 0 {
            self.begun = Some((left, at));
            match bytes.get(at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(other) => {
                    let found = char::from(*other).escape_default();
                    return Err(FramingError::Protocol(format!("expected '$', got '{found}'")));
                }
            }
            let Some((word, begin)) = length(bytes, at, "bulk count")? else { return Ok(None) };
            let invalid = || FramingError::Protocol("invalid bulk length".to_owned());
            let word = usize::try_from(word).map_err(|_| invalid())?;
            let end = begin.checked_add(word).and_then(|end| end.checked_add(2));
            let end = end.filter(|&end| end <= limits.bytes).ok_or_else(invalid)?;
            match bytes.get(end - 2..end) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => {
                    return Err(FramingError::Protocol(
                        "a bulk string does not end with CRLF".to_owned(),
                    ));
                }
            }
            (left, at) = (left - 1, end);
        }
        Ok(Some(at))
    }
}

/// The number behind the byte at `at`, and where its line ends, once that is there.
fn length(bytes: &[u8], at: usize, what: &str) -> Result<Option<(i64, usize)>, FramingError> {
    let from = &bytes[at..bytes.len().min(at + LENGTH_MAX)];
    let Some(end) = memchr::memchr(b'\n', from) else {
        if from.len() == LENGTH_MAX {
            return Err(FramingError::Protocol(format!("too big {what} string")));
        }
        return Ok(None);
    };
    let invalid = || {
        let of = if what == "bulk count" { "bulk" } else { "multibulk" };
        FramingError::Protocol(format!("invalid {of} length"))
    };
    let digits = from[1..end].strip_suffix(b"\r").ok_or_else(invalid)?;
    let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
    // Redis takes no sign and no zero that need not be there.
    let is_plain = |number: &i64| number.to_string() == digits;
    let number = digits.parse().ok().filter(is_plain).ok_or_else(invalid)?;
    Ok(Some((number, at + end + 1)))
}

/// The line that `bytes` begin with, once it is there.
fn line(bytes: &[u8], limits: FramingLimits) -> Result<Option<Framed>, FramingError> {
    let most = LINE_MAX.min(limits.bytes);
    let begin = &bytes[..bytes.len().min(most)];
    let Some(end) = memchr::memchr(b'\n', begin) else {
        let too_big = || FramingError::Protocol("too big inline request".to_owned());
        return if begin.len() == most { Err(too_big()) } else { Ok(None) };
    };
    let line = &bytes[..end];
    // Before its quotes are looked at: a URL may hold one alone.
    if http::is_http(line) {
        return Err(FramingError::Http);
    }
    let words = inline::words(line.strip_suffix(b"\r").unwrap_or(line));
    let words =
        words.ok_or_else(|| FramingError::Protocol("unbalanced quotes in request".to_owned()))?;
    if words.len() > limits.words {
        return Err(FramingError::Protocol("too many words in an inline request".to_owned()));
    }
    Ok(Some(Framed { words: Words::Line(words), len: end + 1 }))
}

impl Words {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Here(words) => words.len(),
            Self::Line(words) => words.len(),
        }
    }

    /// Checks whether they came as an inline command.
    pub(super) fn are_inline(&self) -> bool {
        matches!(self, Self::Line(_))
    }

    /// Them, out of what was received.
    pub(super) fn of<'a>(&'a self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        match self {
            Self::Here(words) => words.iter().map(|word| &bytes[word.clone()]).collect(),
            Self::Line(words) => words.iter().map(Vec::as_slice).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: FramingLimits = FramingLimits { bytes: 1000, words: 20 };

    /// Words, and bytes that they take.
    type Found = (Vec<Vec<u8>>, usize);

    fn words(bytes: &[u8]) -> Result<Option<Found>, String> {
        let framed = Framing::default().next(bytes, LIMITS).map_err(|broken| broken.to_string())?;
        Ok(framed.map(|framed| {
            (framed.words.of(bytes).into_iter().map(<[u8]>::to_vec).collect(), framed.len)
        }))
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings_or_lines() {
        let all = |texts: &[&str]| texts.iter().map(|it| it.as_bytes().to_vec()).collect();
        for (bytes, wanted, len) in [
            ("*2\r\n$4\r\nPING\r\n$0\r\n\r\nrest", all(&["PING", ""]), 20),
            ("*1\r\n$4\r\n\r\n\r\n\r\n", all(&["\r\n\r\n"]), 14),
            ("*0\r\n", Vec::new(), 4),
            ("*-1\r\n", Vec::new(), 5),
            ("*-7\r\nrest", Vec::new(), 5),
            ("PING  a\r\nrest", all(&["PING", "a"]), 9),
            ("SADD k \"a b\\x41\"\n", all(&["SADD", "k", "a bA"]), 17),
            ("\r\n", Vec::new(), 2),
        ] {
            assert_eq!(words(bytes.as_bytes()), Ok(Some((wanted, len))), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_command_is_told_as_soon_as_it_can_be() {
        let nested = "*1\r\n".repeat(100);
        let long = format!("*1\r\n${}\r\n", 990);
        for (bytes, wanted) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*+1\r\n", "invalid multibulk length"),
            ("*01\r\n$1\r\na\r\n", "invalid multibulk length"),
            ("*1\r\n$01\r\na\r\n", "invalid bulk length"),
            ("*21\r\n", "invalid multibulk length"),
            ("*1\r\n:1\r\n", "expected '$', got ':'"),
            (nested.as_str(), "expected '$', got '*'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            (long.as_str(), "invalid bulk length"),
            ("*1\r\n$18446744073709551615\r\n", "invalid bulk length"),
            ("*1\r\n$1\r\nabc", "a bulk string does not end with CRLF"),
            ("*99999999999999999999999999999999", "too big mbulk count string"),
            ("*1\r\n$99999999999999999999999999999999", "too big bulk count string"),
            ("a \"b\r\n", "unbalanced quotes in request"),
        ] {
            assert_eq!(words(bytes.as_bytes()), Err(format!("Protocol error: {wanted}")));
        }
        assert_eq!(words(b"POST /it's HTTP/1.1\r\n"), Err("HTTP".to_owned()));
        assert!(words(&[b'x'; 1000]).unwrap_err().contains("too big inline request"));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_it_is_the_same_and_nothing_panics(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
            noise in prop::collection::vec(any::<u8>(), 0..60),
            cut in 0_usize..200,
        ) {
            let mut bytes = format!("*{}\r\n", all.len()).into_bytes();
            for word in &all {
                bytes.extend(format!("${}\r\n", word.len()).into_bytes());
                bytes.extend(word);
                bytes.extend(b"\r\n");
            }
            let len = bytes.len();
            let mut framing = Framing::default();
            for end in 0..len {
                if end % (cut + 1) == 0 {
                    prop_assert_eq!(framing.next(&bytes[..end], LIMITS), Ok(None));
                }
            }
            bytes.extend(&noise);
            let framed = framing.next(&bytes, LIMITS).unwrap().unwrap();
            prop_assert_eq!(framed.len, len);
            prop_assert_eq!(framed.words.of(&bytes), all);
            let _ = Framing::default().next(&noise, LIMITS);
            let mut broken = bytes[..cut.min(len)].to_vec();
            broken.extend(noise);
            let _ = Framing::default().next(&broken, LIMITS);
        }
    }
}
