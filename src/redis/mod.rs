//! Redis, as urlseen uses it.
pub mod keys;
pub mod lease;
pub mod link;
pub mod protocol;
pub mod trouble;
