//! What makes one filter's false positives differ from another's.

/// The seed of a layout's hash: 32 bits, as MurmurHash3 takes it.
///
/// It is drawn at random once and kept with the filter; whoever knows it can craft links that make
/// others look seen. Two filters with different seeds are wrong about different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u32);

impl Seed {
    /// A seed chosen by the caller: drawn, configured, or read from where the filter is kept.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// The number, to be kept with the filter.
    pub fn get(self) -> u32 {
        self.0
    }
}
