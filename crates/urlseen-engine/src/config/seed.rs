//! Choice between a random and a fixed seed of the filter.

/// Source of the seed of the filter's hash.
///
/// Attackers who know the seed can make URLs that cause false positives for other URLs. The seed is
/// therefore random unless a user needs the same bits twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedChoice {
    /// Random seed, drawn when the filter is created and stored with it.
    Random,
    /// Fixed seed with this value.
    Fixed(u32),
}
