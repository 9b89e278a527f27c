//! Filters, which tell whether a fingerprint has been seen before.
//!
//! ```text
//! capacity, error rate -> Sizing -> Geometry ┐
//!                                    Seed    ├-> Native -> KeyHash (shard, hash)
//!                                            │      └----> Shards (the bits) -> Verdict
//!                                            └-> FillWatch (fill and present error rate)
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | how a kind sets and tests its bits in memory | `two_choice/`, `block/`, `local/` |
//! | the registry of kinds, and the kinds of other projects | `kinds/`, `redisbloom/` |
//! | what all filters in Redis have | `redis_kind/` |
//! | limits on unseen items | `limit/` |
//!
//! Folders are in `urlseen-storage`, calls of Redis in `urlseen-redis`. All crates above use this
//! one; other programs use the crate `urlseen`. The API can change at any time.
//!
//! This crate starts no threads and reads no clock. Only [`memory`] reads files, to learn the size
//! of the machine's memory. One thread owns a [`Shards`], which has no locks.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod ages;
mod bit_strings;
mod block;
mod capacity;
pub mod choice;
mod error_rate;
pub mod expire_after;
mod fill;
pub mod generation;
mod geometry;
pub mod id;
pub mod key_hash;
pub mod kinds;
pub mod limit;
mod local;
pub mod memory;
pub mod native;
#[cfg(test)]
mod native_tests;
pub mod number;
mod outlook;
mod rate;
pub mod redis_kind;
pub mod redisbloom;
mod region;
mod saved_keys;
mod sizing;
mod spec;
mod strings;
mod two_choice;

pub use bit_strings::PlacementError;
pub use capacity::{Capacity, CapacityError};
pub use error_rate::{ErrorRate, ErrorRateError};
pub use fill::{FillWatch, REMEDY_IN_FOLDER, REMEDY_IN_REDIS};
pub use geometry::{BLOCK_BITS, BLOCK_BYTES, Blocks, Geometry};
pub use key_hash::{KeyHash, KeyHasher, SHARD_RULE, SHARDS, ShardId};
pub use kinds::{Kind, Parameters};
pub use local::{
    Ages, Blob, BuildError, Effort, Fill, FilterKind, ForgettingFilter, Full, Gauge, Hashed,
    OverFrozen, Recent, RedisBloomFilter, Removal, Saved, Shards, Verdict,
};
pub use outlook::Outlook;
pub use redis_kind::{Estimate, RedisFilterKeys, RedisKind};
pub use redisbloom::Reservation;
pub use region::AllocationError;
pub use sizing::Sizing;
pub use spec::{DIVISION, DROP_TRACKING, FilterSpec, SAME, Seed, SpecDifference, SpecError};
pub use strings::{Placed, ScriptFilter};
