//! What identifies a request: the fingerprint, and the algorithms that compute it.

mod key;

pub use key::Fingerprint;
