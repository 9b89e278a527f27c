//! State of a crawl in Redis: commit protocol, rejects, and repairs.

pub mod protocol;
pub mod rejects;
pub(crate) mod upkeep;
