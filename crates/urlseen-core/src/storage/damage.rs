//! A place in a file that is not as it was written.

use std::fmt;

/// A place in a file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file's name in the folder.
    pub(crate) file: String,
    /// The first byte of what cannot be read, from 0.
    pub(crate) offset: u64,
    /// What is wrong with it.
    pub(crate) what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)
    }
}
