//! What a state folder was made for.

use crate::filter::native::Native;
use crate::filter::{Capacity, ErrorRate, Geometry, Layout, Seed};
use crate::fingerprint::Algorithm;

/// The format of the folder that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// All that moves a bit or changes a fingerprint, and whose filter it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Pins {
    /// The crawl's name.
    pub crawl: String,
    /// How a fingerprint becomes bit positions.
    pub layout: Layout,
    /// What the hash is seeded with; `None` where any seed will do.
    pub seed: Option<Seed>,
    /// How the bits are divided.
    pub geometry: Geometry,
    /// How many fingerprints the filter was sized for.
    pub capacity: Capacity,
    /// The error rate that it was sized for.
    pub error_rate: ErrorRate,
    /// How fingerprints are computed.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in their fragments are different.
    pub keep_fragments: bool,
}

/// What a folder's file `header` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The id of the filter, drawn when the folder was begun.
    pub filter: u64,
    /// What it was made for. The seed is always there.
    pub pins: Pins,
}

impl Header {
    /// The seed of the filter's hash.
    pub fn seed(&self) -> Seed {
        todo!()
    }

    /// The layout that the filter must be started with.
    pub fn native(&self) -> Native {
        todo!()
    }
}

/// Something that a folder was made for and that is wanted otherwise now. Display says both, and
/// what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a key of the configuration where there is one.
    pub what: &'static str,
    /// What the folder was made for.
    pub folder: String,
    /// What is wanted.
    pub wanted: String,
}
