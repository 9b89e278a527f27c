//! Ways of items through the engine without a crawl in Redis: a pipe and an import; and the source
//! of a crawl.

pub mod import;
pub mod input;
pub mod pipe;
pub mod source;
