//! Fingerprints, filters, storage and filters in Redis: the parts that the library `urlseen` and
//! the daemon share. Programs use the crate `urlseen`; this one changes as both need it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod choice;
pub mod filter;
pub mod fingerprint;
pub mod head;
#[cfg(feature = "redis")]
pub mod held;
#[cfg(feature = "link")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_filter;
#[cfg(feature = "redis")]
pub mod reject;
#[cfg(feature = "redis")]
pub mod script;
#[cfg(feature = "storage")]
pub mod storage;
