//! A crawl in Redis: its commit protocol, its sink and its rejects.

pub mod protocol;
pub mod rejects;
pub(crate) mod sink;
pub(crate) mod upkeep;
