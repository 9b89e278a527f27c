//! Overlap of two filters, from their bits.
//!
//! ```text
//! bits of A and B, page by page -> Ones -> Totals (by the Cells of each part) -> Overlap
//! ```
//!
//! The bits of A or B, or-ed, are those of a filter that all keys of both were set in. So its size
//! is estimated as that of A and of B is, and what is in both follows: |A| + |B| - |A or B|
//! (Swamidass and Baldi, "Mathematical correction for fingerprint similarity measures to improve
//! chemical retrieval", J. Chem. Inf. Model. 47, 2007).
//!
//! Pure: no files, no network.

mod ones;
mod overlap;
#[cfg(test)]
mod tests;

pub use ones::Ones;
pub use overlap::{Interval, Overlap, Totals};
