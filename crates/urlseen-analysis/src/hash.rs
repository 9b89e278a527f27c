//! Hash of bytes, for sets and for a random choice that is the same in each run.

use std::hash::{DefaultHasher, Hasher as _};

/// Returns a hash of bytes. It is the same in each run of the same program.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
