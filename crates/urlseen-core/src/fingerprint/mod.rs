//! Fingerprints, and the algorithms that compute them.
//!
//! A [`Fingerprinter`] makes the URL of a request canonical, and hashes the text that the
//! [`Algorithm`] writes.

mod algorithms;
mod by_pages;
pub mod canonical;
mod fingerprinter;
mod key;
pub mod lanes;
pub mod pages;
mod partition;
pub mod same;

pub use algorithms::{Algorithm, UnknownAlgorithmError};
pub use by_pages::ByPages;
pub use fingerprinter::{FingerprintSpec, Fingerprinter, Request};
pub use key::Fingerprint;
pub use partition::{Partition, PartitionCount, PartitionCountError};
