//! Filters in Redis: their definitions, the scripts that test and add fingerprints, and the opening
//! of a filter.

pub mod ask;
pub mod definition;
#[cfg(feature = "link")]
pub mod opening;
