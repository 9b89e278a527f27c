//! The daemon's connection to Redis. It opens and logs in, classifies errors, and checks before the
//! start that all needed commands and keys will work. Commands on it keep their order.
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
