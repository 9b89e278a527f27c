//! Whether the filter's seed is drawn or given.

/// Where the seed of the filter's hash comes from.
///
/// A seed that others know lets them craft URLs that make other URLs look seen, so it is drawn
/// unless somebody needs the same bits twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedChoice {
    /// Drawn when the filter is made, and kept with it.
    Random,
    /// This one.
    Fixed(u32),
}
