//! The daemon's connection to Redis: reaching it, telling its troubles apart, proving before the
//! start that everything a crawl needs will work, and a connection on which commands keep their
//! order.
//!
//! ```text
//! RedisAddress -> connect -> preflight -> Link
//!                    \___________\_________\____ LinkError -> retry() -> Backoff
//! ```

mod address;
pub mod backoff;
pub mod connect;
pub mod keys;
pub mod lease;
pub mod limits;
pub mod link;
pub mod packed;
mod page;
pub mod preflight;
mod reply;
mod stream;

pub use address::{ALLOWED, RedisAddress, RedisAddressError};
pub(super) use stream::wants_certificate;
