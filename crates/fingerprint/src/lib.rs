//! Fingerprints, and the algorithms that compute them.
//!
//! A [`Fingerprinter`] makes the URL of a request canonical, and hashes the text that the
//! [`Algorithm`] writes.
//!
//! | to find | look in |
//! |---|---|
//! | the canonical form of a URL, the order of its query | `canonical/` |
//! | the algorithms of Scrapy and scrapy-redis | `algorithms.rs` |
//! | the rules `[[same]]`, which make URLs equal | `same/` |
//! | settings whose value is one word | `choice.rs` |
//!
//! Items, which have a URL or a ready fingerprint, are in `urlseen-engine`. All crates use this
//! one; other programs use the crate `urlseen`. The API can change at any time.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod algorithms;
pub mod canonical;
pub mod choice;
mod fingerprinter;
mod key;
pub mod lanes;
mod partition;
mod rule_matching;
pub mod rule_pages;
pub mod same;

pub use algorithms::{Algorithm, UnknownAlgorithmError};
pub use fingerprinter::{FingerprintSpec, Fingerprinter, Request};
pub use key::Fingerprint;
pub use partition::{Partition, PartitionCount, PartitionCountError};
pub use rule_matching::ByPages;
