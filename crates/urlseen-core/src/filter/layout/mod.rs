//! Layouts: the shard and the bit positions of a fingerprint. This module has the native layout,
//! and an interface for the layouts of other projects, whose bits are in Redis strings
//! ([`BitStrings`]).

pub(super) mod bit_strings;
pub mod native;
#[cfg(test)]
mod native_tests;

pub(crate) use bit_strings::BitStrings;
pub(crate) use bit_strings::SizeError;
pub use bit_strings::{BitPosition, PlacementError};
