//! Redis, as urlseen uses it: reaching it, telling its troubles apart, proving before the start
//! that everything a crawl needs will work, and what the crawl then asks of it.
//!
//! ```text
//! RedisAddress -> connect -> preflight -> Link <-> Protocol
//!                    \___________\_________\____ Trouble -> retry() -> Backoff
//! ```

pub mod backoff;
mod classify;
pub mod connect;
pub mod keys;
pub mod lease;
pub mod link;
pub mod preflight;
pub mod protocol;
pub mod trouble;
