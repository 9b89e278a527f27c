//! Replies to clients, in either version of the protocol.

use std::fmt::{Display, Write};

use bytes::BytesMut;

/// Version of the Redis protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Version that every client can read.
    Resp2,
    /// Version that a client requests with `HELLO 3`.
    Resp3,
}

/// Reply of the server to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Simple(&'static str),
    Error(String),
    Number(i64),
    /// Boolean, encoded as a number in version 2.
    Bool(bool),
    Null,
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    /// Map of names to values, encoded as an array in version 2.
    Map(Vec<(Reply, Reply)>),
}

impl Reply {
    /// Reply to a command that succeeded.
    pub(super) const OK: Self = Self::Simple("OK");

    pub(super) fn bulk(text: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(text.into())
    }

    /// Makes a number reply from a count. A count above the range of `i64` becomes the maximum of
    /// `i64`.
    pub(super) fn count(count: u64) -> Self {
        Self::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Makes an error. Line ends in the text become spaces, because the text may come from a
    /// client.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into().replace(['\r', '\n'], " "))
    }

    /// Appends the encoded reply to `out`.
    pub(super) fn write(&self, version: Version, out: &mut BytesMut) {
        let is_new = version == Version::Resp3;
        match self {
            Self::Simple(text) => line(out, '+', text),
            Self::Error(text) => line(out, '-', text),
            Self::Number(number) => line(out, ':', number),
            Self::Bool(is) if is_new => line(out, '#', if *is { 't' } else { 'f' }),
            Self::Bool(is) => line(out, ':', i32::from(*is)),
            Self::Null if is_new => line(out, '_', ""),
            Self::Null => line(out, '$', -1),
            Self::Bulk(bytes) => {
                line(out, '$', bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Array(all) => {
                line(out, '*', all.len());
                for reply in all {
                    reply.write(version, out);
                }
            }
            Self::Map(all) => {
                let (kind, len) = if is_new { ('%', all.len()) } else { ('*', 2 * all.len()) };
                line(out, kind, len);
                for (name, value) in all {
                    name.write(version, out);
                    value.write(version, out);
                }
            }
        }
    }
}

/// Appends a line of the protocol. The line begins with the character `kind`.
pub(super) fn line(out: &mut BytesMut, kind: char, content: impl Display) {
    write!(out, "{kind}{content}\r\n").expect("the buffer grows");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_own_encoding() {
        for (reply, old, new) in [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (Reply::Number(-7), ":-7\r\n", ":-7\r\n"),
            (Reply::Bool(true), ":1\r\n", "#t\r\n"),
            (Reply::Bool(false), ":0\r\n", "#f\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::bulk("a\r\n"), "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"),
            (Reply::Array(vec![Reply::bulk("")]), "*1\r\n$0\r\n\r\n", "*1\r\n$0\r\n\r\n"),
            (
                Reply::Map(vec![(Reply::Simple("a"), Reply::Null)]),
                "*2\r\n+a\r\n$-1\r\n",
                "%1\r\n+a\r\n_\r\n",
            ),
        ] {
            for (version, wanted) in [(Version::Resp2, old), (Version::Resp3, new)] {
                let mut out = BytesMut::new();
                reply.write(version, &mut out);
                assert_eq!(out, wanted.as_bytes(), "{reply:?}");
            }
        }
    }
}
