//! Problems of a configuration, with their places, and the names that were removed.

use memchr::memchr_iter;
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Origin of a value. A value with a later variant overrides a value with an earlier variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// Default value, because no layer sets the key.
    Default,
    /// Storage folder that records the value, because no layer sets the key.
    Folder(Arc<Path>),
    /// Configuration file, and the place in the file if that is known.
    File(Arc<Path>, Option<FilePlace>),
    /// Environment variable of this name.
    Environment(String),
    /// Argument `--set` of this key.
    Set(String),
}

/// Place in a text file. Lines and columns count from 1. A column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    /// Character in the line, from 1.
    pub(crate) column: usize,
}

impl FilePlace {
    /// Returns the place of a byte in `text`.
    pub(super) fn of(byte: usize, text: &[u8]) -> Self {
        let before = &text[..byte.min(text.len())];
        let line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(line).chars().count() + 1;
        Self { line: memchr_iter(b'\n', before).count() + 1, column }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Folder(path) => write!(f, "storage folder {}", path.display()),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some(FilePlace { line, column })) => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Environment(name) => write!(f, "environment {}", name.escape_debug()),
            Self::Set(key) => write!(f, "--set {}", key.escape_debug()),
        }
    }
}

impl Serialize for ValueOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All problems of a configuration, at least one: the origin of each faulty value, and the fault in
/// one line, with the value found and the allowed values. Passwords in it are masked. `Display`
/// writes a line for each problem, and a last line with the number of problems.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems(pub(super) Vec<(ValueOrigin, String)>);

impl Problems {
    /// Sorts the problems by origin, and fails with them if there are any.
    pub(super) fn check(mut self) -> Result<(), Self> {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (origin, fault) in &self.0 {
            writeln!(f, "{origin}: {fault}")?;
        }
        match self.0.len() {
            1 => f.write_str("1 problem in the configuration, nothing was started"),
            count => write!(f, "{count} problems in the configuration, nothing was started"),
        }
    }
}

impl std::error::Error for Problems {}

/// Replacement of a stream as source.
const LIST: &str = "let crawlers push to the list source.key, with source.kind = \"list\"";

/// Names that exist no more, each with its replacement.
const REMOVED: &[(&str, &str)] = &[
    ("source.kind = \"stream\"", LIST),
    ("source.field", LIST),
    ("source.after_commit", LIST),
    (
        "storage rotate",
        "stop the daemon, empty the filter with urlseen storage reset, and start the daemon again",
    ),
    ("config schema", "urlseen config check"),
    (
        "limits",
        "urlseen status shows the groups with most dropped items; to let more items pass, raise \
         max of the rule [[limit]]",
    ),
    ("over_limit", DROPS),
    ("over_limit.key", DROPS),
    ("over_limit.max_len", DROPS),
    ("explain --bits", EXPLAINED),
    ("explain --all", EXPLAINED),
    ("replay --field", "write the items of the stream to a file, one a line, and replay the file"),
    ("status --samples", "urlseen tap --once"),
    ("plan --fits", "your memory, divided by the bits of a key that urlseen plan prints"),
    ("plan --rate", "the page docs/design/scale.md has the measured costs and the arithmetic"),
    ("plan --plot", "the tables of urlseen plan, or its --json"),
];

/// Replacement of the keys about a list of items over a limit.
const DROPS: &str = "no key. Rules [[limit]] drop and count items: docs/reference/limits.md";

/// Replacement of the options that print more of an explanation.
const EXPLAINED: &str = "urlseen explain ITEM OTHER compares two spellings, and with --algorithm \
                         urlseen fingerprint prints the fingerprints by another algorithm";

/// Returns the message about a command, an option, a key or a section that was removed.
pub(crate) fn removed(name: &str) -> Option<String> {
    let (_, instead) = REMOVED.iter().find(|(full, _)| *full == name)?;
    Some(format!("{name} was removed in 0.3.0; instead: {instead}"))
}

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
    fn a_removed_name_has_its_replacement() {
        let message = removed("storage rotate").unwrap();
        assert!(message.starts_with("storage rotate was removed in 0.3.0; instead: stop"));
        assert_eq!(removed("storage reset"), None);
    }
}
