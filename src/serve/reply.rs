//! Replies to clients, in either version of the protocol.

use std::fmt::{Display, Write};

use bytes::BytesMut;

use urlseen_engine::engine::{Answer, Wanted};

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

/// Builds the error that Redis sends for a command with too few or too many words.
pub(super) fn wrong_arity(name: &str) -> Reply {
    Reply::error(format!("ERR wrong number of arguments for '{name}' command"))
}

/// Builds the error that Redis sends for an unknown subcommand.
pub(super) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Reply {
    let found = shown(subcommand);
    Reply::error(format!("ERR unknown subcommand '{found}'. Try {command} HELP."))
}

/// Returns the first bytes of a word as text for an error.
pub(super) fn shown(word: &[u8]) -> String {
    const LONGEST: usize = 128;
    String::from_utf8_lossy(&word[..word.len().min(LONGEST)]).into_owned()
}

/// Form of a reply to a command with members. Each member has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyShape {
    /// One answer, as RedisBloom replies.
    Bool,
    /// All answers, as RedisBloom replies.
    Bools,
    /// One answer, as a set of Redis replies.
    Number,
    /// All answers, as a set of Redis replies.
    Numbers,
    /// Number of members that were added.
    Added,
    /// Number of members that were forgotten.
    Removed,
}

/// Error of RedisBloom for a filter that is full.
const FULL: &str = "ERR non scaling filter is full";

/// Builds the reply to a command from the answers for its members.
pub(super) fn to_answers(shape: ReplyShape, wanted: Wanted, answers: &[Answer]) -> Reply {
    // `BF.ADD` reports 1 for a new member, and `BF.EXISTS` reports 1 for a present member.
    let is = |answer: Answer| match wanted {
        Wanted::Add => answer == Answer::Unseen,
        Wanted::Test | Wanted::Forget => answer == Answer::Seen,
    };
    let bloom = |answer: Answer| match answer {
        Answer::Full => Reply::error(FULL),
        answer => Reply::Bool(is(answer)),
    };
    let count = |full: &str| {
        if answers.contains(&Answer::Full) {
            return Reply::error(full);
        }
        let count = answers.iter().filter(|&&answer| is(answer)).count();
        Reply::count(count as u64)
    };
    let first = answers.first().copied().unwrap_or(Answer::Unseen);
    match shape {
        ReplyShape::Bool => bloom(first),
        ReplyShape::Bools => {
            // As in RedisBloom, the reply ends with the first member that had no room.
            let end = answers.iter().position(|&answer| answer == Answer::Full);
            let said = &answers[..end.map_or(answers.len(), |end| end + 1)];
            Reply::Array(said.iter().copied().map(bloom).collect())
        }
        ReplyShape::Number => Reply::Number(i64::from(is(first))),
        ReplyShape::Numbers => {
            let all = answers.iter().map(|&answer| Reply::Number(i64::from(is(answer))));
            Reply::Array(all.collect())
        }
        ReplyShape::Added => count(FULL),
        ReplyShape::Removed => count(
            "ERR the number of forgotten fingerprints has reached its maximum (forget.max_len): \
             some of the forgotten URLs must pass again first",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Answer::{Full, Seen, Unseen};

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

    #[test]
    fn adding_reports_new_members_and_testing_reports_present_ones() {
        let all = [Seen, Unseen];
        let bools = |wanted| to_answers(ReplyShape::Bools, wanted, &all);
        let said = |first, second| Reply::Array(vec![Reply::Bool(first), Reply::Bool(second)]);
        assert_eq!(bools(Wanted::Add), said(false, true));
        assert_eq!(bools(Wanted::Test), said(true, false));
        assert_eq!(
            to_answers(ReplyShape::Added, Wanted::Add, &[Seen, Unseen, Unseen]),
            Reply::Number(2)
        );
        assert_eq!(
            to_answers(ReplyShape::Removed, Wanted::Forget, &[Seen, Unseen]),
            Reply::Number(1)
        );
    }

    #[test]
    fn the_reply_ends_with_the_first_member_without_room() {
        let full = || Reply::error(FULL);
        let said = to_answers(ReplyShape::Bools, Wanted::Add, &[Unseen, Full, Full]);
        assert_eq!(said, Reply::Array(vec![Reply::Bool(true), full()]));
        assert_eq!(to_answers(ReplyShape::Added, Wanted::Add, &[Unseen, Full]), full());
    }
}
