//! Connection of the daemon to Redis: address, login, errors, and the check before the start
//! (preflight). Redis answers the commands of a connection in order.
//!
//! ```text
//! RedisAddress -> connect -> preflight -> Link
//!                    \___________\_________\____ LinkError -> is_passing() -> Backoff
//! ```

mod address;
pub mod backoff;
pub mod connect;
pub mod limits;
pub mod link;
pub mod packed;
mod page;
pub mod preflight;
mod reply;
mod stream;
mod tls;

pub use address::{ALLOWED, RedisAddress, RedisAddressError};
pub(super) use stream::certificate_error;
pub use tls::{TlsFileError, TlsFiles};
