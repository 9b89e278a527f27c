//! Seed of a filter. Filters with different seeds have different false positives.

use super::id;

/// The seed of a layout's hash: 32 bits, as in MurmurHash3.
///
/// It is drawn at random once and kept with the filter. A program that knows the seed can craft
/// links that make others look seen. Two filters with different seeds have false positives on
/// different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u32);

impl Seed {
    /// Draws a seed from the system.
    pub fn random() -> Self {
        // Half of 64 random bits are 32.
        #[allow(clippy::cast_possible_truncation)]
        Self(id::random() as u32)
    }

    /// Wraps a seed that was configured, or recorded with the filter.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// Returns the number, to be recorded with the filter.
    pub fn get(self) -> u32 {
        self.0
    }
}
