//! The URL-seen test for distributed crawls, as a library; the `urlseen` binary is a thin shell
//! around it.
//!
//! ```text
//! source -> item -> fingerprint -> shard -> filter -> commit -> sink
//! ```
//!
//! Data goes one way, and no stage knows the one behind it. `ARCHITECTURE.md` says which module may
//! use which.

pub mod canonical;
pub mod cli;
pub mod config;
pub mod filter;
pub mod fingerprint;
pub mod hash;
pub mod request;
