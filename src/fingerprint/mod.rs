//! What identifies a request: the fingerprint, and the algorithms that compute it.

mod algorithm;
mod key;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use key::Fingerprint;
