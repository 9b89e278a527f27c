//! Estimated overlap of two filters, computed from their bits.
//!
//! ```text
//! bits of A and B, page by page -> Ones -> Totals (by the Cells of each part) -> Overlap
//! ```
//!
//! The OR of the bits of A and B equals a filter to which all keys of A and of B were added. So the
//! number of keys in this filter is estimated in the same way as for A and for B. The number of
//! common keys is then |A| + |B| - |A or B| (Swamidass and Baldi, "Mathematical correction for
//! fingerprint similarity measures to improve chemical retrieval", J. Chem. Inf. Model. 47, 2007).
//!
//! This module uses no files and no network.

mod ones;
mod overlap;
#[cfg(test)]
mod tests;

pub use ones::Ones;
pub use overlap::{Interval, Overlap, Totals};
