//! Problems of a configuration, with their places.

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
