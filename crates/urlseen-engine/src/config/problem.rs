//! Problems of a configuration, with their places.

use memchr::{memchr_iter, memrchr};
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

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Origin of the faulty value.
    pub(crate) origin: ValueOrigin,
    /// Fault in one line: the value found and the allowed values. Passwords in it are masked.
    pub(crate) fault: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.fault)
    }
}

/// All problems of a configuration, at least one. `Display` writes a line for each problem, ordered
/// by origin, and a last line with the number of problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<ConfigError>);

impl Problems {
    /// Sorts `problems`, and fails with them if there are any.
    pub(super) fn check(mut problems: Vec<ConfigError>) -> Result<(), Self> {
        problems.sort_by(|one, other| one.origin.cmp(&other.origin));
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
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
}
