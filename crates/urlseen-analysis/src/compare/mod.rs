//! Overlap of two filters, from their bits.
//!
//! ```text
//! bits of A and B, page by page -> Ones -> Totals (by the Cells of each part) -> Overlap
//! ```
//!
//! If the bits of A and B are combined by OR, the result is a filter in which the keys of both were
//! set. So its size is estimated in the same way as that of A and of B. The number of common keys
//! follows: |A| + |B| - |A or B| (Swamidass and Baldi, "Mathematical correction for fingerprint
//! similarity measures to improve chemical retrieval", J. Chem. Inf. Model. 47, 2007).
//!
//! This module uses no files and no network.

mod ones;
mod overlap;
#[cfg(test)]
mod tests;

pub use ones::Ones;
pub use overlap::{Interval, Overlap, Totals};
