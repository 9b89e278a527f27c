//! Redis, as urlseen uses it: reaching it, telling its troubles apart, and proving before the start
//! that everything a crawl needs will work.
//!
//! ```text
//! Address -> connect -> preflight -> the crawl
//!               \___________\___________\_____ Trouble -> retry() -> Backoff
//! ```

pub mod address;
pub mod backoff;
mod classify;
pub mod connect;
pub mod preflight;
pub mod trouble;
