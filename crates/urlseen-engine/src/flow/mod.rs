//! Flows of items through the engine without a crawl in Redis, and the sources of a crawl.

pub mod driver;
pub mod feed;
pub mod import;
pub mod input;
pub mod reasons;
pub mod source;

#[cfg(test)]
mod driver_tests;
