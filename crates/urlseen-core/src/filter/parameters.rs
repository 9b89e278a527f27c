//! Parameters: a kind of filter, with all that is chosen for a filter of that kind.

use super::choice::FilterKind;
use super::layout::{
    BitStrings, BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter, SizeError,
};
use super::native::{Native, POSITION_RULE};
use super::spec::{SpecError, part};
use super::{
    Capacity, ErrorRate, Geometry, Placing, REDISBLOOM_RULE, Reservation, SHARD_RULE, Seed, Sizing,
};

/// A kind of filter, with all that is chosen for a filter of that kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameters {
    /// urlseen's own.
    Native {
        /// The seed of the hash; `None` where any will do.
        seed: Option<Seed>,
        /// The division of the bits.
        geometry: Geometry,
        /// Fingerprints that it was sized for.
        capacity: Capacity,
        /// The error rate that it was sized for.
        error_rate: ErrorRate,
    },
    /// A filter of RedisBloom, reserved by urlseen.
    RedisBloom(Reservation),
    /// A filter of RedisBloom that was imported. It says itself what it was reserved for.
    Imported,
    /// Bits of strings in Redis, as another project has them.
    Strings(StringLayout),
    /// A set of fingerprints in Redis, as scrapy-redis has it.
    Set,
}

/// A layout of another project, with its own parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StringLayout {
    /// That of `BloomFilter_imooc`.
    Imooc {
        /// Fingerprints that it is sized for.
        capacity: u64,
        /// The error rate that it is sized for.
        error_rate: f64,
    },
    /// That of pyreBloom.
    PyreBloom {
        /// Fingerprints that it is sized for.
        capacity: u32,
        /// The error rate that it is sized for.
        error_rate: f64,
    },
    /// That of luw2007's bloomfilter.
    Luw2007 {
        /// Fingerprints that it is sized for.
        capacity: u32,
        /// The error rate that it is sized for.
        error_rate: f64,
    },
    /// That of scrapy-redis-bloomfilter.
    ScrapyRedisBloomFilter {
        /// Binary logarithm of its number of bits.
        bit: u32,
        /// Bits a fingerprint.
        hash_number: u32,
    },
    /// That of scrapy-redis-bloomfilter-block-cluster.
    BlockCluster {
        /// Binary logarithm of the number of bits of a block.
        bit: u32,
        /// Bits a fingerprint.
        hash_number: u32,
        /// The number of blocks.
        block_num: u32,
    },
}

impl Parameters {
    pub(super) fn read(value: &impl Fn(&'static str) -> Option<String>) -> Result<Self, SpecError> {
        let kind = part(value, "filter.kind")?;
        let capacity = || part::<u64>(value, "filter.capacity");
        let error_rate = || part::<f64>(value, "filter.error_rate");
        let few = || {
            let capacity = capacity()?;
            u32::try_from(capacity).map_err(|_| SpecError::TooMany { kind, capacity })
        };
        let bit = || part(value, "filter.bit");
        let hash_number = || part(value, "filter.hash_number");
        Ok(match kind {
            FilterKind::Native => {
                let seed = value("filter.seed").map(|_| part(value, "filter.seed")).transpose()?;
                let (capacity, error_rate) = size(capacity()?, error_rate()?)?;
                Self::native(&Sizing::new(capacity, error_rate), seed.map(Seed::new))
            }
            FilterKind::RedisBloom => {
                let (capacity, error_rate) = size(capacity()?, error_rate()?)?;
                let growth = Reservation::growth_of(part(value, "filter.expansion")?);
                Self::RedisBloom(Reservation { capacity, error_rate, growth })
            }
            FilterKind::Imooc => Self::Strings(StringLayout::Imooc {
                capacity: capacity()?,
                error_rate: error_rate()?,
            }),
            FilterKind::PyreBloom => Self::Strings(StringLayout::PyreBloom {
                capacity: few()?,
                error_rate: error_rate()?,
            }),
            FilterKind::Luw2007 => {
                Self::Strings(StringLayout::Luw2007 { capacity: few()?, error_rate: error_rate()? })
            }
            FilterKind::ScrapyRedisBloomFilter => {
                let (bit, hash_number) = (bit()?, hash_number()?);
                Self::Strings(StringLayout::ScrapyRedisBloomFilter { bit, hash_number })
            }
            FilterKind::BlockCluster => {
                let block_num = part(value, "filter.block_num")?;
                let (bit, hash_number) = (bit()?, hash_number()?);
                Self::Strings(StringLayout::BlockCluster { bit, hash_number, block_num })
            }
            FilterKind::ScrapyRedis => Self::Set,
        })
    }

    /// A filter of urlseen's own kind of that size.
    pub fn native(sizing: &Sizing, seed: Option<Seed>) -> Self {
        Self::Native {
            seed,
            geometry: sizing.geometry(),
            capacity: sizing.capacity(),
            error_rate: sizing.error_rate(),
        }
    }

    /// The kind.
    pub fn kind(&self) -> FilterKind {
        match self {
            Self::Native { .. } => FilterKind::Native,
            Self::RedisBloom(_) | Self::Imported => FilterKind::RedisBloom,
            Self::Strings(layout) => layout.kind(),
            Self::Set => FilterKind::ScrapyRedis,
        }
    }

    /// Returns true if such a filter can be in the memory of a process, and in a storage folder.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Native { .. } | Self::RedisBloom(_) | Self::Imported)
    }

    /// Capacity and error rate of a filter in memory, if they are recorded.
    pub fn size(&self) -> Option<(Capacity, ErrorRate)> {
        match *self {
            Self::Native { capacity, error_rate, .. }
            | Self::RedisBloom(Reservation { capacity, error_rate, .. }) => {
                Some((capacity, error_rate))
            }
            Self::Imported | Self::Strings(_) | Self::Set => None,
        }
    }

    /// Fingerprints that it was made for, if its kind is sized by that and it is recorded.
    pub fn capacity(&self) -> Option<u64> {
        match *self {
            Self::Strings(layout) => layout.capacity(),
            _ => self.size().map(|(capacity, _)| capacity.get()),
        }
    }

    /// The size of a native filter.
    pub fn sizing(&self) -> Option<Sizing> {
        let Self::Native { geometry, capacity, error_rate, .. } = *self else { return None };
        Some(Sizing::recorded(capacity, error_rate, geometry))
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

    /// The same with that seed, where the kind has one.
    #[must_use]
    pub fn with_seed(mut self, wanted: Seed) -> Self {
        if let Self::Native { seed, .. } = &mut self {
            *seed = Some(wanted);
        }
        self
    }

    /// Places of fingerprints in Redis, with a seed of 0 if it is open.
    ///
    /// # Errors
    /// The kind is none that Redis holds, or cannot be that large.
    pub fn placing(&self) -> Result<Placing, SpecError> {
        Ok(match *self {
            Self::Native { seed, geometry, .. } => {
                Placing::Blocks(Native::new(seed.unwrap_or(Seed::new(0)), geometry))
            }
            Self::Strings(layout) => Placing::Bits(layout.build()?),
            Self::Set => Placing::Set,
            Self::RedisBloom(_) | Self::Imported => return Err(SpecError::NotInRedis),
        })
    }

    /// The rules by which keys become bit positions and fall on shards; empty where there is none
    /// that could ever be another one.
    pub fn rules(&self) -> [&'static str; 2] {
        match self {
            Self::Native { .. } => [POSITION_RULE, SHARD_RULE],
            // It is in one piece.
            Self::RedisBloom(_) | Self::Imported => [REDISBLOOM_RULE, ""],
            Self::Strings(_) | Self::Set => ["", ""],
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let capacity = |value: u64| ("filter.capacity", value.to_string());
        let error_rate = |value: f64| ("filter.error_rate", format!("{value:e}"));
        match *self {
            Self::Native { seed, capacity: keys, error_rate: rate, .. } => {
                let seed = seed.map(|seed| ("filter.seed", seed.get().to_string()));
                seed.into_iter().chain([capacity(keys.get()), error_rate(rate.get())]).collect()
            }
            Self::RedisBloom(reservation) => vec![
                capacity(reservation.capacity.get()),
                error_rate(reservation.error_rate.get()),
                ("filter.expansion", reservation.expansion().to_string()),
            ],
            Self::Imported | Self::Set => Vec::new(),
            Self::Strings(layout) => match layout {
                StringLayout::Imooc { capacity: keys, error_rate: rate } => {
                    vec![capacity(keys), error_rate(rate)]
                }
                StringLayout::PyreBloom { capacity: keys, error_rate: rate }
                | StringLayout::Luw2007 { capacity: keys, error_rate: rate } => {
                    vec![capacity(keys.into()), error_rate(rate)]
                }
                StringLayout::ScrapyRedisBloomFilter { bit, hash_number } => vec![
                    ("filter.bit", bit.to_string()),
                    ("filter.hash_number", hash_number.to_string()),
                ],
                StringLayout::BlockCluster { bit, hash_number, block_num } => vec![
                    ("filter.bit", bit.to_string()),
                    ("filter.hash_number", hash_number.to_string()),
                    ("filter.block_num", block_num.to_string()),
                ],
            },
        }
    }

    /// Division of the bits in words, if it follows from more than the configuration.
    pub fn division(&self) -> Option<String> {
        let Self::Native { geometry, .. } = self else { return None };
        let (blocks, bits) = (geometry.blocks().get(), geometry.bits_per_block());
        Some(format!("{blocks} blocks of {} with {bits} bits", geometry.blocks_per_part()))
    }
}

impl StringLayout {
    /// The kind.
    pub fn kind(self) -> FilterKind {
        match self {
            Self::Imooc { .. } => FilterKind::Imooc,
            Self::PyreBloom { .. } => FilterKind::PyreBloom,
            Self::Luw2007 { .. } => FilterKind::Luw2007,
            Self::ScrapyRedisBloomFilter { .. } => FilterKind::ScrapyRedisBloomFilter,
            Self::BlockCluster { .. } => FilterKind::BlockCluster,
        }
    }

    /// Fingerprints that it is sized for, if it is sized by that.
    fn capacity(self) -> Option<u64> {
        match self {
            Self::Imooc { capacity, .. } => Some(capacity),
            Self::PyreBloom { capacity, .. } | Self::Luw2007 { capacity, .. } => {
                Some(capacity.into())
            }
            Self::ScrapyRedisBloomFilter { .. } | Self::BlockCluster { .. } => None,
        }
    }

    /// Builds the layout, which says where a fingerprint has its bits.
    ///
    /// # Errors
    /// The layout cannot have that size.
    pub fn build(self) -> Result<Box<dyn BitStrings + Send + Sync>, SizeError> {
        Ok(match self {
            Self::Imooc { capacity, error_rate } => Box::new(Imooc::new(capacity, error_rate)?),
            Self::PyreBloom { capacity, error_rate } => {
                Box::new(PyreBloom::new(capacity, error_rate)?)
            }
            Self::Luw2007 { capacity, error_rate } => {
                Box::new(PyreBloom::unrounded(capacity, error_rate)?)
            }
            Self::ScrapyRedisBloomFilter { bit, hash_number } => {
                Box::new(ScrapyRedisBloomFilter::new(bit, hash_number)?)
            }
            Self::BlockCluster { bit, hash_number, block_num } => {
                Box::new(BlockCluster::new(bit, hash_number, block_num)?)
            }
        })
    }
}

pub(super) fn size(capacity: u64, error_rate: f64) -> Result<(Capacity, ErrorRate), SpecError> {
    Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
}
