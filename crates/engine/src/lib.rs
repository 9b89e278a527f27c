//! Items, the engine and the flows that need no crawl in Redis.
//!
//! | to find | look in |
//! |---|---|
//! | the forms of items, and the rules that a reader applies | `item/` |
//! | how a batch is submitted, read, judged, committed | `engine/mod.rs`, `engine/judge.rs` |
//! | the thread of the storage folder | `engine/store/` |
//! | questions of clients | `engine/query/` |
//! | the loop of pipe and import, and the files that they read | `flow/` |
//!
//! The daemon's work with Redis is in the root package, in `src/pipeline/`. The root package and
//! the Python package use this crate.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod engine;
pub mod flow;
pub mod item;
