//! State of a crawl in Redis: commit protocol, rejects, items over a limit, and repairs.

pub(crate) mod over_limit;
pub mod protocol;
pub mod rejects;
pub(crate) mod upkeep;
