//! Connection of the daemon to Redis: address, login, errors, and the check before the start
//! (preflight). Redis answers the commands of a connection in order.
//!
//! ```text
//! RedisAddress -> connect -> preflight -> Link
//!                    \___________\_________\____ LinkError -> retry() -> Backoff
//! ```

mod address;
pub mod backoff;
mod cluster;
pub mod connect;
pub mod keys;
pub mod lease;
pub mod limits;
pub mod link;
mod nodes;
pub mod packed;
mod page;
pub mod preflight;
mod reply;
mod sentinels;
mod stream;
mod tls;

pub use address::{ALLOWED, RedisAddress, RedisAddressError};
pub use nodes::Node;
pub(super) use stream::certificate_error;
pub use tls::{TlsFileError, TlsFiles};
