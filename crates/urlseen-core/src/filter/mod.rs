//! The filter: has this fingerprint been seen before?
//!
//! ```text
//! capacity, error rate -> Sizing -> Geometry ┐
//!                                    Seed    ├-> Native -> Probe (shard, hash)
//!                                            │      └----> Shards (the bits) -> Verdict
//!                                            └-> Fullness (how full, and how wrong by now)
//! ```
//!
//! Pure: no threads, no clock, no files but [`memory`], which reads how much memory there is.
//! A [`Shards`] belongs to one thread; nothing in it is locked or atomic.

mod capacity;
mod error_rate;
mod expectation;
mod fitting;
mod fullness;
mod geometry;
pub mod hash;
mod hashing;
pub mod layout;
mod line;
pub mod memory;
mod places;
mod prefetch;
mod rate;
mod recent;
pub mod redisbloom;
mod region;
mod reservation;
mod seed;
mod shard;
mod shards;
pub(crate) mod shared;
mod sizing;
mod strings;
mod verdict;

pub use capacity::Capacity;
pub(crate) use capacity::CapacityError;
pub use error_rate::ErrorRate;
pub(crate) use error_rate::ErrorRateError;
pub(crate) use fullness::Crossing;
pub(crate) use fullness::Extent;
pub use fullness::Fullness;
pub use fullness::REMEDY_IN_FOLDER;
pub use fullness::REMEDY_IN_REDIS;
pub use geometry::Geometry;
pub use geometry::LINE_BITS;
pub(crate) use geometry::LINE_BYTES;
pub use geometry::Lines;
pub use hashing::Hashing;
pub(crate) use hashing::REDISBLOOM_RULE;
pub use layout::Layout;
pub(crate) use layout::Position;
pub use layout::Unplaced;
pub use layout::native;
pub use recent::Recent;
pub use region::AllocationError;
pub use reservation::Design;
pub use reservation::Reservation;
pub use seed::Seed;
pub(crate) use shard::SHARD_RULE;
pub use shard::SHARDS;
pub use shard::ShardId;
pub use shards::Count;
pub use shards::Shards;
pub use shared::Estimate;
pub use shared::Placing;
pub use shared::Shared;
pub use sizing::Sizing;
pub use strings::Placed;
pub use strings::StringBits;
pub use strings::StringFilter;
pub use verdict::Verdict;
