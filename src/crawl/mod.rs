//! A crawl in Redis: its commit protocol and its rejects.

pub mod protocol;
pub mod rejects;
pub(crate) mod upkeep;
