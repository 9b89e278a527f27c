//! Items, the engine and the flows that need no crawl in Redis.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod engine;
pub mod flow;
pub mod item;
