//! Hasher for sets and maps whose keys are hashes.

use std::hash::{BuildHasherDefault, Hasher};

/// Hasher for 128-bit hashes. It uses half of their bits.
pub type Hashed = BuildHasherDefault<HalfHasher>;

/// The state of [`Hashed`].
#[derive(Debug, Default)]
pub struct HalfHasher(u64);

impl Hasher for HalfHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 128-bit hashes are hashed");
    }

    #[allow(clippy::cast_possible_truncation)] // Half of a hash is a hash, too.
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
