//! A damaged place in a file of the folder.

use std::fmt;

/// A damaged place in a file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file in the folder.
    pub(crate) file: String,
    /// Offset of the first byte that cannot be read.
    pub(crate) offset: u64,
    /// Kind of the damage, for people.
    pub(crate) what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)
    }
}
