//! Seed of a filter's hash, drawn at random.

use super::id;

/// Seed of a filter's hash: 32 bits, as in MurmurHash3.
///
/// The seed is drawn at random once, and stored with the filter. An attacker who knows the seed can
/// craft links that make the filter report certain unseen links as seen. Filters with different
/// seeds report different unseen keys as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u32);

impl Seed {
    /// Draws a random seed from the system.
    pub fn random() -> Self {
        // 32 of the 64 random bits are enough.
        #[allow(clippy::cast_possible_truncation)]
        Self(id::random() as u32)
    }

    /// Makes a seed of a number that was configured, or recorded with the filter.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// Returns the seed as a number, to be recorded with the filter.
    pub fn get(self) -> u32 {
        self.0
    }
}
