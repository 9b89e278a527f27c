//! Ways of items through the engine without a crawl in Redis: a pipe and an import.

pub mod import;
pub mod input;
pub mod pipe;
