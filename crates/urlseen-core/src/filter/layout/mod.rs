//! How a fingerprint becomes a shard and bit positions: this program's own way, and what the ways
//! of other projects have in common, whose bits lie in Redis strings ([`BitStrings`]).

pub(super) mod bit_strings;
pub mod native;
#[cfg(test)]
mod native_tests;

pub(crate) use bit_strings::SizeError;
pub use bit_strings::{BitPosition, BitStrings, PlacementError};
