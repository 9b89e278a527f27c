//! Problems of a configuration, with their places.

use memchr::{memchr_iter, memrchr};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Origin of a value. Later variants override earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// Default value, because no layer sets the key.
    Default,
    /// Configuration file, and the place in it if there is one.
    File(Arc<Path>, Option<FilePlace>),
    /// Environment variable of this name.
    Environment(String),
    /// Argument `--set` of this key.
    Set(String),
}

/// Place in a text file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    /// Character in the line, from 1.
    pub(crate) column: usize,
}

impl FilePlace {
    /// Place of a byte in `text`.
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

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Origin of the faulty value.
    pub(crate) origin: ValueOrigin,
    /// Description of the fault.
    pub(crate) fault: Fault,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.fault)
    }
}

/// Fault of a configuration. Each message states in one line the value found and the allowed
/// values. It never shows a password: the value is masked before it gets here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// File that does not exist, or that this process may not read.
    #[error("cannot be read: {0}; give the path of a file that can")]
    Unreadable(String),
    /// File that is not text.
    #[error("is not UTF-8 from here on; save the file as UTF-8 text")]
    NotUtf8,
    /// File that is too long to be a configuration.
    #[error("is longer than {0} bytes, so it is hardly a configuration")]
    TooLong(u64),
    /// Text that is not TOML. For a key that appears twice, the message names it.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// Section that does not exist.
    #[error("there is no section [{}]{}", .section.escape_debug(), hint(.nearest.as_ref()))]
    UnknownSection {
        /// Name of the section as found.
        section: String,
        /// Section that was probably meant.
        nearest: Option<String>,
    },
    /// Key that does not exist.
    #[error("there is no key {}{}", .key.escape_debug(), hint(.nearest.as_ref()))]
    UnknownKey {
        /// Name of the key as found.
        key: String,
        /// Key that was probably meant.
        nearest: Option<String>,
    },
    /// Variable that sets no key.
    #[error("no key has this name, and variables that begin with URLSEEN_ must name a key{}",
        hint(.nearest.as_ref()))]
    UnknownVariable {
        /// Variable that was probably meant.
        nearest: Option<String>,
    },
    /// Key for a password, which does not exist.
    #[error(
        "there is no key {}; the password is part of redis.url or in the environment as \
         URLSEEN_REDIS_PASSWORD",
        .key.escape_debug()
    )]
    PasswordKey {
        /// Name of the key as found.
        key: String,
    },
    /// Value in place of a section.
    #[error("{section} is {found}; allowed: a section, which begins with the line [{section}]")]
    NotASection {
        /// Name of the faulty section.
        section: String,
        /// Type of the value found.
        found: String,
    },
    /// Value of another type.
    #[error("{key} is {found}, {is}; allowed: {allowed}")]
    WrongType {
        /// Key with the faulty value.
        key: String,
        /// Shortened text of the value.
        found: String,
        /// Type of the faulty value.
        is: &'static str,
        /// Values that the key accepts.
        allowed: String,
    },
    /// Value of the right type that is not allowed.
    #[error("{key} is {found}; allowed: {allowed}")]
    NotAllowed {
        /// Key with the faulty value.
        key: String,
        /// Shortened text of the value.
        found: String,
        /// Values that the key accepts.
        allowed: String,
    },
    /// Value that is refused for a reason beyond the allowed values.
    #[error("{key} is {found}: {reason}")]
    Refused {
        /// Key with the faulty value.
        key: String,
        /// Shortened text of the value.
        found: String,
        /// Reason of the refusal, and the remedy.
        reason: String,
    },
    /// Value that a later version will accept.
    #[error("{key} is {found}, which is not in this version yet; allowed now: {allowed}")]
    NotYet {
        /// Key with the faulty value.
        key: String,
        /// Text of the faulty value.
        found: String,
        /// Values that the key accepts.
        allowed: String,
    },
    /// Variable whose value is not text.
    #[error("is not UTF-8; set it to UTF-8 text")]
    NotText,
    /// Argument `--set` that is not `key=value`.
    #[error("has no value; write --set key=value, as in --set filter.capacity=1e9")]
    NoValue,
    /// Password in a place that every user of the machine can read.
    #[error(
        "redis.url is {found:?}: a password on the command line shows in the process list; put \
        it in the environment as URLSEEN_REDIS_PASSWORD, or the URL as URLSEEN_REDIS__URL"
    )]
    PasswordShown {
        /// URL without the password.
        found: String,
    },
    /// Redis key that two keys of the configuration name.
    #[error(
        "{key} is {name:?}, and so is {other} ({other_origin}); allowed: a Redis key of its \
        own for each"
    )]
    SameRedisKey {
        /// First key of the configuration.
        key: &'static str,
        /// Other key of the configuration.
        other: &'static str,
        /// Origin of the other key's value.
        other_origin: ValueOrigin,
        /// Name of the Redis key.
        name: String,
    },
    /// Redis key that urlseen uses for its own records.
    #[error(
        "{key} is {name:?}, which is a key of urlseen's own; allowed: any that is not \
        urlseen:…:state, :lease, :processing or :spec"
    )]
    OwnRedisKey {
        /// Key of the configuration.
        key: &'static str,
        /// Name of the Redis key.
        name: String,
    },
    /// Setting that pushes URLs of items that have none.
    #[error(
        "sink.emit is {emit:?}, but items have no URL if source.item is {item:?} \
        ({item_origin}); allowed: sink.emit = \"item\", or another source.item"
    )]
    NoUrl {
        /// Value of the setting `sink.emit`.
        emit: &'static str,
        /// Value of the setting `source.item`.
        item: &'static str,
        /// Origin of `source.item`.
        item_origin: ValueOrigin,
    },
    /// End to push to in a sorted set, which has no ends.
    #[error(
        "sink.push_to is \"left\", but sink.kind is \"zset\" ({kind_origin}), which has no ends: \
        items are sorted by their priority; leave sink.push_to out, or set sink.kind = \"list\""
    )]
    NoEnds {
        /// Origin of the value of `sink.kind`.
        kind_origin: ValueOrigin,
    },
    /// Invalid rule in `[[pass]]`.
    #[error("[[pass]] {reason}")]
    PassRule {
        /// Fault of the rule, and the remedy.
        reason: String,
    },
    /// Filter kind that cannot be at the configured place.
    #[error(
        "filter.kind is {kind:?}, and filter.place is {place:?} ({place_origin}), where no filter \
        of that kind can be; allowed: filter.place = {other:?}, or filter.kind = {}",
        kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join(", ")
    )]
    KindElsewhere {
        /// Value of `filter.kind`.
        kind: &'static str,
        /// Value of `filter.place`.
        place: &'static str,
        /// Origin of the value of `filter.place`.
        place_origin: ValueOrigin,
        /// Place at which the kind can be.
        other: &'static str,
        /// Kinds that can be at the configured place.
        kinds: Vec<&'static str>,
    },
    /// Limit of file descriptors that is lower than the process needs.
    #[error(
        "{need} file descriptors are needed ({uses}), and the hard limit is {limit}; raise it \
        (LimitNOFILE= in a systemd unit, ulimit -Hn in a shell){fewer}"
    )]
    TooFewDescriptors {
        /// Number of descriptors that it needs.
        need: u64,
        /// Purposes of the descriptors.
        uses: String,
        /// Hard limit of the process.
        limit: u64,
        /// Another remedy, if there is one.
        fewer: String,
    },
    /// Limit of rejects that is smaller than a batch, so that a batch of rejects would never fit.
    #[error(
        "rejects.max_len is {max_len}, less than source.batch, {batch} ({batch_origin}); \
        allowed: at least as many, since all items of a batch may be rejects"
    )]
    RejectsTooShort {
        /// Value of `rejects.max_len`.
        max_len: u64,
        /// Value of `source.batch`.
        batch: usize,
        /// Origin of the value of `source.batch`.
        batch_origin: ValueOrigin,
    },
}

/// End of a sentence that suggests a name.
fn hint(nearest: Option<&String>) -> String {
    nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}

/// All problems of a configuration, at least one. `Display` writes a line for each, ordered by
/// origin, and a last line with their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<ConfigError>);

impl Problems {
    /// Sorts `problems`. Returns `None` if there are none.
    pub(super) fn new(mut problems: Vec<ConfigError>) -> Option<Self> {
        problems.sort_by(|one, other| one.origin.cmp(&other.origin));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// Iterates over the problems, ordered by origin.
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
