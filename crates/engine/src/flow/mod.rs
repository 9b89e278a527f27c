//! Flows of items through the engine without a crawl in Redis.

pub mod driver;
pub mod feed;
pub mod import;
pub mod input;
pub mod reasons;
pub mod records;

#[cfg(test)]
mod driver_tests;
