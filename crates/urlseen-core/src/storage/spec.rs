//! Filter spec: what a filter was made for.

use crate::filter::{Capacity, ErrorRate, Geometry, LocalKind, Reservation, Seed};
use crate::fingerprint::Algorithm;

/// All that moves a bit or changes a fingerprint, and whose filter it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Pins {
    /// The crawl's name.
    pub crawl: String,
    /// What the filter was made for.
    pub made: Made,
    /// How fingerprints are computed.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in their fragments are different.
    pub keep_fragments: bool,
}

/// What a filter was made for, and by which kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Made {
    /// urlseen's own.
    Native {
        /// What the hash is seeded with; `None` where any seed will do.
        seed: Option<Seed>,
        /// How the bits are divided.
        geometry: Geometry,
        /// How many fingerprints it was sized for.
        capacity: Capacity,
        /// The error rate that it was sized for.
        error_rate: ErrorRate,
    },
    /// A filter of RedisBloom, reserved by urlseen.
    RedisBloom(Reservation),
    /// A filter of RedisBloom that was imported. It says itself what it was reserved for.
    Imported,
}

impl Made {
    /// The kind.
    pub fn kind(&self) -> LocalKind {
        match self {
            Self::Native { .. } => LocalKind::Native,
            Self::RedisBloom(_) | Self::Imported => LocalKind::RedisBloom,
        }
    }

    /// How many fingerprints it was made for, and at which error rate, where that is recorded.
    pub fn size(&self) -> Option<(Capacity, ErrorRate)> {
        match *self {
            Self::Native { capacity, error_rate, .. }
            | Self::RedisBloom(Reservation { capacity, error_rate, .. }) => {
                Some((capacity, error_rate))
            }
            Self::Imported => None,
        }
    }

    /// The seed of the hash, where there is one.
    pub fn seed(&self) -> Option<Seed> {
        if let Self::Native { seed, .. } = self { *seed } else { None }
    }

    /// The same with a seed that is set, where it was open.
    #[must_use]
    pub fn seeded(mut self, draw: impl FnOnce() -> Seed) -> Self {
        if let Self::Native { seed, .. } = &mut self {
            *seed = Some(seed.unwrap_or_else(draw));
        }
        self
    }
}
