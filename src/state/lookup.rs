//! The URL-seen test on a folder at rest.

use std::path::Path;

use super::error::{OpenError, Unrecoverable};
use super::header::Header;
use super::recovery::Target;
use crate::filter::Verdict;
use crate::fingerprint::Fingerprint;

/// A folder that nobody writes to, and that nobody can as long as this lives.
#[derive(Debug)]
pub struct AtRest {}

impl AtRest {
    /// Opens a folder to read, without waiting. Writes nothing.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        todo!()
    }

    /// What it was made for; `None` if it is new.
    pub fn header(&self) -> Option<&Header> {
        todo!()
    }

    /// What the filter would say of each fingerprint if it were brought to `target`. Reads the
    /// shards that they fall into, and the log.
    pub fn verdicts(
        &self,
        fingerprints: &[Fingerprint],
        target: Target,
    ) -> Result<Vec<Verdict>, Unrecoverable> {
        todo!()
    }
}
