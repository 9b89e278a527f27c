//! Fingerprints, filters, storage and filters in Redis: the parts that the library `urlseen` and
//! the daemon share. Other programs use the crate `urlseen`. The API of this crate can change at
//! any time.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod choice;
pub mod filter;
pub mod fingerprint;
pub mod limit;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_filter;
#[cfg(feature = "storage")]
pub mod storage;
