//! Framing: finds the start and the end of each command in the bytes of a client.
//!
//! In both versions of the protocol, a command is an array of bulk strings, or a line of words
//! ("inline"). Other bytes, and commands that are too large, are refused as early as possible with
//! the errors of Redis. So no client can make the daemon store bytes of an invalid command.

use std::ops::Range;

use super::inline;

/// Maximum number of bytes in the line of an inline command.
const LINE_MAX: usize = 64 << 10;
const LENGTH_MAX: usize = 32;

/// Bytes after each bulk string.
const END: &[u8] = b"\r\n";

/// Limits on the commands of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FramingLimits {
    /// Maximum number of bytes in a command.
    pub(super) bytes: usize,
    /// Maximum number of words in a command.
    pub(super) words: usize,
}

impl FramingLimits {
    /// Limits for a client that has not sent the password yet, as in Redis.
    pub(super) const STRANGER: Self = Self { bytes: 16 << 10, words: 10 };
}

/// Words of a command, and the length of the command in bytes. An empty line is a command without
/// words, which Redis ignores.
pub(super) type Framed = (Words, usize);

/// Words that make up a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// Positions of the words in the received bytes.
    Here(Vec<Range<usize>>),
    /// Words of a line, with quotes and escapes resolved.
    Line(Vec<Vec<u8>>),
}

/// Error for bytes that are not a command. After the error, the connection is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FramingError {
    /// Protocol error with the message of Redis.
    #[error("Protocol error: {0}")]
    Protocol(String),
    /// Request of a client that speaks HTTP.
    #[error("HTTP")]
    Http,
}

fn broken(words: impl Into<String>) -> FramingError {
    FramingError::Protocol(words.into())
}

/// Finder of commands, which remembers its position in an incomplete command.
#[derive(Debug, Default)]
pub(super) struct Framing {
    /// For an incomplete array: the number of words that have not arrived, and the position of the
    /// next word.
    begun: Option<(usize, usize)>,
}

impl Framing {
    /// Returns the command at the start of `bytes`; `None` if the command is not complete. Then the
    /// caller must call again with the same bytes and the bytes after them.
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
        let mut words = Vec::new();
        let mut at = memchr::memchr(b'\n', bytes).map_or(len, |end| end + 1);
        while let Some(word) = word(&bytes[..len], at, limits)? {
            at = word.end + END.len();
            words.push(word);
        }
        Ok(Some((Words::Here(words), len)))
    }

    /// Returns the length of the array at the start of `bytes`; `None` if the array is not
    /// complete.
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
                return Err(broken("invalid multibulk length"));
            }
            // Redis ignores an array of negative length.
            (usize::try_from(words).unwrap_or(0), at)
        };
        while left > 0 {
            self.begun = Some((left, at));
            let Some(word) = word(bytes, at, limits)? else { return Ok(None) };
            (left, at) = (left - 1, word.end + END.len());
        }
        Ok(Some(at))
    }
}

/// Returns the position of the bulk string at `at`; `None` if the string is not complete.
fn word(
    bytes: &[u8],
    at: usize,
    limits: FramingLimits,
) -> Result<Option<Range<usize>>, FramingError> {
    match bytes.get(at) {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => {
            let found = char::from(*other).escape_default();
            return Err(broken(format!("expected '$', got '{found}'")));
        }
    }
    let Some((length, begin)) = length(bytes, at, "bulk count")? else { return Ok(None) };
    let end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length));
    let is_small = |end: &usize| end.checked_add(END.len()).is_some_and(|it| it <= limits.bytes);
    let end = end.filter(is_small).ok_or_else(|| broken("invalid bulk length"))?;
    match bytes.get(end..end + END.len()) {
        None => Ok(None),
        Some(END) => Ok(Some(begin..end)),
        Some(_) => Err(broken("a bulk string does not end with CRLF")),
    }
}

/// Reads the number after the byte at `at`. Returns the number and the end of its line; `None` if
/// the line is not complete.
fn length(bytes: &[u8], at: usize, what: &str) -> Result<Option<(i64, usize)>, FramingError> {
    let from = &bytes[at..bytes.len().min(at + LENGTH_MAX)];
    let Some(end) = memchr::memchr(b'\n', from) else {
        if from.len() == LENGTH_MAX {
            return Err(broken(format!("too big {what} string")));
        }
        return Ok(None);
    };
    let invalid = || {
        let of = if what == "bulk count" { "bulk" } else { "multibulk" };
        broken(format!("invalid {of} length"))
    };
    let digits = from[1..end].strip_suffix(b"\r").ok_or_else(invalid)?;
    let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
    // Redis accepts no sign and no leading zero.
    let is_plain = |number: &i64| number.to_string() == digits;
    let number = digits.parse().ok().filter(is_plain).ok_or_else(invalid)?;
    Ok(Some((number, at + end + 1)))
}

/// Returns the words of the line at the start of `bytes`; `None` if the line is not complete.
fn line(bytes: &[u8], limits: FramingLimits) -> Result<Option<Framed>, FramingError> {
    let most = LINE_MAX.min(limits.bytes);
    let begin = &bytes[..bytes.len().min(most)];
    let Some(end) = memchr::memchr(b'\n', begin) else {
        let too_big = || broken("too big inline request");
        return if begin.len() == most { Err(too_big()) } else { Ok(None) };
    };
    let line = &bytes[..end];
    // HTTP is recognised before quotes are checked, because a URL may contain a single quote.
    if is_http(line) {
        return Err(FramingError::Http);
    }
    let words = inline::words(line.strip_suffix(b"\r").unwrap_or(line));
    let words = words.ok_or_else(|| broken("unbalanced quotes in request"))?;
    if words.len() > limits.words {
        return Err(broken("too many words in an inline request"));
    }
    Ok(Some((Words::Line(words), end + 1)))
}

impl Words {
    /// Returns the number of words in the command.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Here(words) => words.len(),
            Self::Line(words) => words.len(),
        }
    }

    /// Returns true if the words came as an inline command.
    pub(super) fn are_inline(&self) -> bool {
        matches!(self, Self::Line(_))
    }

    /// Returns the words; `bytes` are the received bytes of the command.
    pub(super) fn of<'a>(&'a self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        match self {
            Self::Here(words) => words.iter().map(|word| &bytes[word.clone()]).collect(),
            Self::Line(words) => words.iter().map(Vec::as_slice).collect(),
        }
    }
}

/// Methods of HTTP/1.1, and `PRI`, the first word of HTTP/2.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PRI"];

/// Returns true if the line is a request, a response or a `Host` header of HTTP. A browser can send
/// a method of any name. So a line that ends with an HTTP version counts as a request, whatever its
/// method.
fn is_http(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    METHODS.iter().any(|method| first.eq_ignore_ascii_case(method.as_bytes()))
        || after(first, b"host:").is_some()
        || is_version(first)
        || words.next_back().is_some_and(is_version)
}

fn is_version(word: &[u8]) -> bool {
    after(word, b"http/").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

/// Returns the part of a word after a prefix; `None` if the word does not begin with the prefix.
/// Ignores the case of the prefix.
fn after<'a>(word: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = word.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: FramingLimits = FramingLimits { bytes: 1000, words: 20 };

    /// Words of a command, and its length in bytes.
    type Found = (Vec<Vec<u8>>, usize);

    fn words(bytes: &[u8]) -> Result<Option<Found>, String> {
        let framed = Framing::default().next(bytes, LIMITS).map_err(|broken| broken.to_string())?;
        Ok(framed
            .map(|(words, len)| (words.of(bytes).into_iter().map(<[u8]>::to_vec).collect(), len)))
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
    fn bytes_that_are_not_a_command_are_refused_as_early_as_possible() {
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
        fn commands_are_the_same_for_any_split_and_nothing_panics(
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
            let (words, found) = framing.next(&bytes, LIMITS).unwrap().unwrap();
            prop_assert_eq!(found, len);
            prop_assert_eq!(words.of(&bytes), all);
            let _ = Framing::default().next(&noise, LIMITS);
            let mut broken = bytes[..cut.min(len)].to_vec();
            broken.extend(noise);
            let _ = Framing::default().next(&broken, LIMITS);
        }
    }

    #[test]
    fn http_is_distinguished_from_commands() {
        for line in [
            "GET / HTTP/1.1",
            "get /",
            "Head /a%20b HTTP/1.0",
            "POST",
            "pUt /it's HTTP/1.1",
            "DELETE /\"a HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "TRACE / HTTP/1.1",
            "CONNECT victim.example:443 HTTP/1.1",
            "PATCH / HTTP/1.1",
            "PRI * HTTP/2.0",
            "SADD demo HTTP/1.1",
            "BF.ADD\tdemo\thttp/1.1 ",
            "HTTP/1.1 200 OK",
            "Host: 127.0.0.1:6390",
            "hOST:a",
        ] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "  ",
            "PING",
            "SADD demo GET POST Host: HTTP/1.1 last",
            "SADD demo http://example.com/HTTP/1.1",
            "SADD demo HTTP/ HTTP",
            "SADD demo https/1.1",
            "GETS /",
            "Hostile: a",
            "hos",
        ] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
