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
//! | how a kind of urlseen sets and tests its bits | `two_choice/`, `native/`, `exact.rs` |
//! | the kinds of other projects | `peers/` |
//! | the registry of kinds, and their parameters | `kinds/` |
//! | what all filters in memory have, generations and the frozen layer | `local/` |
//! | what all filters in Redis have | `redis_kind/` |
//! | limits on unseen items | `limit/` |
//! | limits of the machine | `memory.rs`, `descriptors.rs` |
//!
//! Folders are in `urlseen-storage`, calls of Redis in `urlseen-redis`. All crates above use this
//! one; other programs use the crate `urlseen`. The API can change at any time.
//!
//! This crate starts no threads and reads no clock. Only [`memory`] reads files, to learn the size
//! of the machine's memory. One thread owns a [`Shards`], which has no locks.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod ages;
pub mod choice;
pub mod descriptors;
mod exact;
pub mod expire_after;
mod fill;
mod generation;
mod geometry;
pub mod histogram;
pub mod id;
mod key_hash;
mod kinds;
pub mod limit;
mod local;
pub mod memory;
mod native;
pub mod number;
mod outlook;
mod peers;
mod rate;
pub mod redis_kind;
mod region;
mod saved_keys;
mod size;
mod sizing;
mod spec;
mod spec_error;
mod two_choice;

pub use fill::{FillWatch, REMEDY_IN_FOLDER, REMEDY_IN_REDIS};
pub use generation::{Generation, Generations, LIVE, LetThrough, Lifetime, Lifetimes};
pub(crate) use geometry::BLOCK_BYTES;
pub use geometry::{Blocks, Geometry};
pub(crate) use key_hash::SHARD_RULE;
pub use key_hash::{KeyHash, KeyHasher, SHARDS, ShardId, digest_of, murmur3_x86_32};
pub use kinds::{Kind, Parameters};
pub use local::{
    Ages, Blob, BuildError, Effort, Fill, FilterKind, ForgettingFilter, Full, Gauge, Hashed,
    OverFrozen, Recent, Saved, Shards, Verdict,
};
pub use native::Native;
pub use outlook::Outlook;
pub use peers::bit_strings::PlacementError;
pub use peers::redisbloom;
pub use peers::script_filter::ScriptFilter;
pub use redis_kind::{Estimate, RedisFilterKeys, RedisKind};
pub use region::AllocationError;
pub use size::{Capacity, ErrorRate};
pub use sizing::Sizing;
pub use spec::{CANONICAL, DIVISION, DROP_TRACKING, FilterSpec, SAME, Seed, SpecDifference};
pub use spec_error::SpecError;
