//! What a filter was made for.

use super::header::value;
use crate::filter::{Blocks, Capacity, ErrorRate, Geometry, LocalKind, Reservation, Seed};

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

    /// Reads it from a header of that kind.
    pub(super) fn parse(text: &str, kind: LocalKind) -> Option<Self> {
        let number = |key| value(text, key)?.parse::<u32>().ok();
        if kind == LocalKind::RedisBloom && value(text, "imported").is_some() {
            return Some(Self::Imported);
        }
        let capacity = Capacity::new(value(text, "capacity")?.parse().ok()?).ok()?;
        let error_rate = value(text, "error_rate")?.parse().ok()?;
        if kind == LocalKind::RedisBloom {
            let growth = Reservation::growth_of(number("expansion")?);
            return Some(Self::RedisBloom(Reservation { capacity, error_rate, growth }));
        }
        let blocks =
            Blocks::ALL.into_iter().find(|blocks| Some(blocks.get()) == number("blocks"))?;
        let bits_per_block = u8::try_from(number("bits_per_block")?).ok()?;
        let geometry = Geometry::new(blocks, bits_per_block, number("blocks_per_part")?)?;
        let seed = Some(Seed::new(number("seed")?));
        Some(Self::Native { seed, geometry, capacity, error_rate })
    }
}
