//! Overlap of two filters, from their bits.
//!
//! ```text
//! bits of A and B, page by page -> Ones -> Totals (by the Cells of each part) -> Overlap
//! ```
//!
//! The OR of the bits of A and B is a filter in which all keys of A and of B were set. So its
//! number of keys is estimated in the same way as those of A and of B. The number of common keys is
//! then |A| + |B| - |A or B| (Swamidass and Baldi, "Mathematical correction for fingerprint
//! similarity measures to improve chemical retrieval", J. Chem. Inf. Model. 47, 2007).
//!
//! This module uses no files and no network.

mod ones;
mod overlap;
#[cfg(test)]
mod tests;

pub use ones::Ones;
pub use overlap::{Interval, Overlap, Totals};
