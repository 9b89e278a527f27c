//! Filters in Redis: their definitions, the scripts that test and add fingerprints, and the opening
//! of a filter.

pub mod definition;
pub mod judge;
#[cfg(feature = "link")]
pub mod opening;
