//! The URL-seen test for distributed crawls, as a library; the `urlseen` binary is a thin shell
//! around it.
//!
//! ```text
//! source -> item -> fingerprint -> shard -> filter -> commit -> sink
//! ```
//!
//! Data goes one way, and no stage knows the one behind it. `ARCHITECTURE.md` says which module may
//! use which.

pub mod admin;
pub mod batch;
pub mod canonical;
pub mod config;
pub mod desk;
pub mod engine;
pub mod filter;
pub mod fingerprint;
pub mod hash;
pub mod head;
pub mod import;
pub mod input;
pub mod item;
pub mod lanes;
pub mod phase;
pub mod pipe;
pub mod pipeline;
pub mod plot;
pub mod protocol;
pub mod redis;
pub mod redisbloom;
pub mod rejects;
pub mod replay;
pub mod request;
pub mod serve;
pub mod shared;
pub mod shutdown;
pub mod sink;
pub mod source;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod transfer;
pub mod upkeep;
