//! What is wrong with a configuration, and where.

use memchr::{memchr_iter, memrchr};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Where a value comes from. Later variants go before earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// Nobody set it.
    Default,
    /// The file, and the place in it if there is one.
    File(Arc<Path>, Option<FilePlace>),
    /// The environment variable of this name.
    Environment(String),
    /// A `--set` of this key.
    Set(String),
}

/// A place in a text file; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    /// The line.
    pub(crate) line: usize,
    /// The character in the line.
    pub(crate) column: usize,
}

impl FilePlace {
    /// The place of a byte of `text`.
    pub(super) fn of(byte: usize, text: &[u8]) -> Self {
        let before = &text[..byte.min(text.len())];
        let line_start = memrchr(b'\n', before).map_or(0, |end| end + 1);
        Self {
            line: memchr_iter(b'\n', before).count() + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some(FilePlace { line, column })) => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Environment(name) => write!(f, "environment {}", name.escape_debug()),
            Self::Set(key) => write!(f, "--set {}", key.escape_debug()),
        }
    }
}

/// One thing wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it was found.
    pub(crate) origin: ValueOrigin,
    /// What it is.
    pub(crate) fault: Fault,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.fault)
    }
}

/// What is wrong. Each says in one line what was found, what is allowed, and never a password:
/// what was found is masked before it gets here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The file is not there, or not for us.
    #[error("cannot be read: {0}; give the path of a file that can")]
    Unreadable(String),
    /// The file is no text.
    #[error("is not UTF-8 from here on; save the file as UTF-8 text")]
    NotUtf8,
    /// The file is far too long to be meant.
    #[error("is longer than {0} bytes, so it is hardly a configuration")]
    TooLong(u64),
    /// The text is no TOML; the key if one stands twice.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// There is no such section.
    #[error("there is no section [{}]{}", .section.escape_debug(), hint(.nearest.as_ref()))]
    UnknownSection {
        /// As found.
        section: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// There is no such key.
    #[error("there is no key {}{}", .key.escape_debug(), hint(.nearest.as_ref()))]
    UnknownKey {
        /// As found.
        key: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// There is no key that this variable sets.
    #[error("no key has this name, and what begins with URLSEEN_ must have one's{}",
        hint(.nearest.as_ref()))]
    UnknownVariable {
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// Passwords have no key of their own.
    #[error(
        "there is no key {}; the password is part of redis.url or in the environment as \
         URLSEEN_REDIS_PASSWORD",
        .key.escape_debug()
    )]
    PasswordKey {
        /// As found.
        key: String,
    },
    /// A section's name has a value of its own.
    #[error("{section} is {found}; allowed: a section, which begins with the line [{section}]")]
    NotASection {
        /// The section.
        section: String,
        /// What it is instead.
        found: String,
    },
    /// A value of another type.
    #[error("{key} is {found}, {is}; allowed: {allowed}")]
    WrongType {
        /// The key.
        key: String,
        /// The value, shortened.
        found: String,
        /// Its type.
        is: &'static str,
        /// What the key takes.
        allowed: String,
    },
    /// A value of the right type that makes no sense.
    #[error("{key} is {found}; allowed: {allowed}")]
    NotAllowed {
        /// The key.
        key: String,
        /// The value, shortened.
        found: String,
        /// What the key takes.
        allowed: String,
    },
    /// As [`Fault::NotAllowed`], where the reason says more than what is allowed.
    #[error("{key} is {found}: {reason}")]
    Refused {
        /// The key.
        key: String,
        /// The value, shortened.
        found: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A value that a later version will know.
    #[error("{key} is {found}, which is not in this version yet; allowed now: {allowed}")]
    NotYet {
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// What the key takes.
        allowed: String,
    },
    /// A variable's value is no text.
    #[error("is not UTF-8; set it to UTF-8 text")]
    NotText,
    /// A `--set` that is not `key=value`.
    #[error("has no value; write --set key=value, as in --set filter.capacity=1e9")]
    NoValue,
    /// A password where every user of the machine can read it.
    #[error(
        "redis.url is {found:?}: a password on the command line shows in the process list; put \
        it in the environment as URLSEEN_REDIS_PASSWORD, or the URL as URLSEEN_REDIS__URL"
    )]
    PasswordShown {
        /// The URL without the password.
        found: String,
    },
    /// Two keys of the configuration name one Redis key.
    #[error(
        "{key} is {name:?}, and so is {other} ({other_origin}); allowed: a Redis key of its \
        own for each"
    )]
    SameRedisKey {
        /// The one.
        key: &'static str,
        /// The other one.
        other: &'static str,
        /// Where the other one is set.
        other_origin: ValueOrigin,
        /// The Redis key.
        name: String,
    },
    /// A Redis key that urlseen keeps its own records in.
    #[error(
        "{key} is {name:?}, which is a key of urlseen's own; allowed: any that is not \
        urlseen:…:state, :lease, :processing or :spec"
    )]
    OwnRedisKey {
        /// The key of the configuration.
        key: &'static str,
        /// The Redis key.
        name: String,
    },
    /// URLs are to be pushed, of items that have none.
    #[error(
        "sink.emit is {emit:?}, but items have no URL where source.item is {item:?} \
        ({item_origin}); allowed: sink.emit = \"item\", or another source.item"
    )]
    NoUrl {
        /// `sink.emit`.
        emit: &'static str,
        /// `source.item`.
        item: &'static str,
        /// Where that is set.
        item_origin: ValueOrigin,
    },
    /// A sorted set has no ends.
    #[error(
        "sink.push_to is \"left\", but sink.kind is \"zset\" ({kind_origin}), which has no ends: \
        items are sorted by their priority; leave sink.push_to out, or set sink.kind = \"list\""
    )]
    NoEnds {
        /// Where `sink.kind` is set.
        kind_origin: ValueOrigin,
    },
    /// A rule is none.
    #[error("[[pass]] {reason}")]
    PassRule {
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// No filter of that kind lives there.
    #[error(
        "filter.kind is {kind:?}, and filter.place is {place:?} ({place_origin}), where no filter \
        of that kind can be; allowed: filter.place = {other:?}, or filter.kind = {}",
        kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join(", ")
    )]
    KindElsewhere {
        /// `filter.kind`.
        kind: &'static str,
        /// `filter.place`.
        place: &'static str,
        /// Where `filter.place` is set.
        place_origin: ValueOrigin,
        /// Where such filters can be.
        other: &'static str,
        /// The kinds of filters that can be there.
        kinds: Vec<&'static str>,
    },
    /// The process may not have as many file descriptors as it needs.
    #[error(
        "{need} file descriptors are needed ({uses}), and the hard limit is {limit}; raise it \
        (LimitNOFILE= in a systemd unit, ulimit -Hn in a shell){fewer}"
    )]
    TooFewDescriptors {
        /// How many it needs.
        need: u64,
        /// What for.
        uses: String,
        /// How many it may have.
        limit: u64,
        /// Another way out, if there is one.
        fewer: String,
    },
    /// A batch of nothing but rejects would never fit.
    #[error(
        "rejects.max_len is {max_len}, less than source.batch, {batch} ({batch_origin}); \
        allowed: at least as many, since all items of a batch may be rejects"
    )]
    RejectsTooShort {
        /// `rejects.max_len`.
        max_len: u64,
        /// `source.batch`.
        batch: usize,
        /// Where that is set.
        batch_origin: ValueOrigin,
    },
}

/// The end of a sentence that says what was probably meant.
fn hint(nearest: Option<&String>) -> String {
    nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}

/// Everything that is wrong with a configuration; at least one thing. Display has a line for each,
/// by origin, and a last line with their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<ConfigError>);

impl Problems {
    /// Sorts `problems`; `None` if there are none.
    pub(super) fn new(mut problems: Vec<ConfigError>) -> Option<Self> {
        problems.sort_by(|one, other| one.origin.cmp(&other.origin));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// Each of them, by origin.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self {
            writeln!(f, "{problem}")?;
        }
        match self.0.len() {
            1 => f.write_str("1 problem in the configuration, nothing was started"),
            count => write!(f, "{count} problems in the configuration, nothing was started"),
        }
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a\nélan = 1\r\n".as_bytes();
        for (byte, line, column) in [(0, 1, 1), (1, 1, 2), (2, 2, 1), (4, 2, 2), (99, 3, 1)] {
            assert_eq!(FilePlace::of(byte, text), FilePlace { line, column }, "byte {byte}");
        }
    }

    #[test]
    fn problems_come_by_origin_and_are_counted() {
        let file = |line, column| {
            ValueOrigin::File(Path::new("config.toml").into(), Some(FilePlace { line, column }))
        };
        let problem = |origin| ConfigError { origin, fault: Fault::NoValue };
        let origins = [
            ValueOrigin::Set("a".to_owned()),
            ValueOrigin::Environment("URLSEEN_B".to_owned()),
            file(12, 1),
            file(2, 30),
            file(2, 4),
        ];
        let problems = Problems::new(origins.map(problem).into()).unwrap().to_string();
        let starts: Vec<_> =
            problems.lines().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(
            starts,
            [
                "config.toml:2:4",
                "config.toml:2:30",
                "config.toml:12:1",
                "environment URLSEEN_B",
                "--set a",
                "5 problems in the configuration, nothing was started",
            ]
        );
        assert_eq!(Problems::new(Vec::new()), None);
    }
}
