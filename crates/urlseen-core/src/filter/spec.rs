//! Filter spec: what a filter was made for, wherever it is.
//!
//! A spec is read by the names that the configuration has for its parts, and shown by them: the
//! configuration, a storage folder, Redis and the commands have one way to say what a filter is.

use std::fmt;
use std::str::FromStr;

use super::choice::FilterKind;
use super::layout::{
    BitStrings, BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter, SizeError,
};
use super::native::{Native, POSITION_RULE};
use super::{
    Capacity, CapacityError, ErrorRate, ErrorRateError, Geometry, Placing, REDISBLOOM_RULE,
    Reservation, SHARD_RULE, Seed, Sizing,
};
use crate::fingerprint::Algorithm;

/// All that moves a bit of a filter or changes a fingerprint in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterSpec {
    /// The filter's kind, with all that is chosen for a filter of that kind.
    pub parameters: Parameters,
    /// The algorithm of the fingerprints.
    pub algorithm: Algorithm,
    /// Whether URLs that differ only in what follows `#` are different.
    pub keep_fragments: bool,
}

/// A kind of filter, with all that is chosen for a filter of that kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameters {
    /// urlseen's own.
    Native {
        /// The seed of the hash; `None` where any will do.
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

/// Why there is no such filter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The kind cannot be that large, or that small.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// No kind can be that large.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// No kind has that error rate.
    #[error(transparent)]
    ErrorRate(#[from] ErrorRateError),
    /// The kind's bits are nowhere in Redis.
    #[error("the filter kind redisbloom is for filter.place = \"local\" alone")]
    NotInRedis,
    /// More than the kind can count.
    #[error(
        "filter.capacity is {capacity}, and the kind {kind} is made for at most {} \
         fingerprints; lower it, or use another kind",
        u32::MAX
    )]
    TooMany {
        /// The kind.
        kind: FilterKind,
        /// What was asked for.
        capacity: u64,
    },
    /// A part is missing, or is not what it should be.
    #[error("{name} is {found}, which is none", found = .found.as_deref().unwrap_or("missing"))]
    Unreadable {
        /// The name of the part.
        name: &'static str,
        /// What stands there.
        found: Option<String>,
    },
}

/// Something that a filter was made for and that is wanted otherwise now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecDifference {
    /// The name of the part: a key of the configuration where there is one.
    pub what: &'static str,
    /// What the filter was made for.
    pub found: String,
    /// What is wanted.
    pub wanted: String,
}

impl fmt::Display for SpecDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, found, wanted } = self;
        write!(f, "{what} is {wanted}, and the filter was made for {found}")
    }
}

/// Name of how the bits of a native filter are divided, which no key of the configuration says.
pub const DIVISION: &str = "the division of the filter's bits";

impl FilterSpec {
    /// Reads what `value` has under the names of the configuration.
    ///
    /// # Errors
    /// A part is missing or no such filter exists.
    pub fn read(value: impl Fn(&'static str) -> Option<String>) -> Result<Self, SpecError> {
        Ok(Self {
            parameters: Parameters::read(&value)?,
            algorithm: part(&value, "fingerprint.algorithm")?,
            keep_fragments: part(&value, "fingerprint.keep_fragments")?,
        })
    }

    /// Its parts, as [`FilterSpec::read`] reads them.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("filter.kind", self.kind().to_string())];
        fields.extend(self.parameters.fields());
        fields.push(("fingerprint.algorithm", self.algorithm.name().to_owned()));
        fields.push(("fingerprint.keep_fragments", self.keep_fragments.to_string()));
        fields
    }

    /// The kind of the filter.
    pub fn kind(&self) -> FilterKind {
        self.parameters.kind()
    }

    /// What `wanted` differs in. What one of the two leaves open is no difference: a seed that is
    /// yet to be drawn, and the size of a filter that was imported. Where the kinds differ, their
    /// parameters are not compared.
    pub fn differences(&self, wanted: &Self) -> Vec<SpecDifference> {
        let of_wanted = wanted.fields();
        let is_same_kind = self.kind() == wanted.kind();
        let comparable =
            |name: &str| is_same_kind || name == "filter.kind" || name.starts_with("fingerprint.");
        let mut differences: Vec<_> = self
            .fields()
            .into_iter()
            .filter(|(name, _)| comparable(name))
            .filter_map(|(what, found)| {
                let (_, wanted) = of_wanted.iter().find(|(name, _)| *name == what)?;
                let wanted = wanted.clone();
                (found != wanted).then_some(SpecDifference { what, found, wanted })
            })
            .collect();
        let wanted_size = wanted.parameters.size();
        let divisions = (self.parameters.division(), wanted.parameters.division());
        if let (Some(found), Some(wanted)) = divisions
            && found != wanted
            && self.parameters.size() == wanted_size
        {
            differences.push(SpecDifference { what: DIVISION, found, wanted });
        }
        differences
    }
}

impl Parameters {
    fn read(value: &impl Fn(&'static str) -> Option<String>) -> Result<Self, SpecError> {
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

    /// Whether such a filter can be in the memory of a process, and in a storage folder.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Native { .. } | Self::RedisBloom(_) | Self::Imported)
    }

    /// How many fingerprints a filter in memory was made for, and at which error rate, where that
    /// is recorded.
    pub fn size(&self) -> Option<(Capacity, ErrorRate)> {
        match *self {
            Self::Native { capacity, error_rate, .. }
            | Self::RedisBloom(Reservation { capacity, error_rate, .. }) => {
                Some((capacity, error_rate))
            }
            Self::Imported | Self::Strings(_) | Self::Set => None,
        }
    }

    /// How many fingerprints it was made for, in kinds that are sized by that, where it is recorded.
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

    /// How fingerprints are placed in Redis, with a seed of 0 where it is open.
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

    fn fields(&self) -> Vec<(&'static str, String)> {
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

    /// How the bits are divided, in words, where that follows from more than the configuration.
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

    /// How many fingerprints it is sized for, where it is by that.
    fn capacity(self) -> Option<u64> {
        match self {
            Self::Imooc { capacity, .. } => Some(capacity),
            Self::PyreBloom { capacity, .. } | Self::Luw2007 { capacity, .. } => {
                Some(capacity.into())
            }
            Self::ScrapyRedisBloomFilter { .. } | Self::BlockCluster { .. } => None,
        }
    }

    /// Where such a filter has its bits.
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

fn size(capacity: u64, error_rate: f64) -> Result<(Capacity, ErrorRate), SpecError> {
    Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
}

/// Reads a part.
fn part<T: FromStr>(
    value: &impl Fn(&'static str) -> Option<String>,
    name: &'static str,
) -> Result<T, SpecError> {
    let found = value(name);
    let read = found.as_deref().and_then(|text| text.parse().ok());
    read.ok_or(SpecError::Unreadable { name, found })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::choice::Choice;
    use super::*;

    fn read(fields: &[(&'static str, &str)]) -> Result<FilterSpec, SpecError> {
        let fields: BTreeMap<_, _> = fields.iter().copied().collect();
        FilterSpec::read(|name| fields.get(name).map(ToString::to_string))
    }

    fn native(capacity: &str, seed: Option<&str>) -> FilterSpec {
        let mut fields = vec![
            ("filter.kind", "native"),
            ("filter.capacity", capacity),
            ("filter.error_rate", "0.000001"),
            ("fingerprint.algorithm", "scrapy"),
            ("fingerprint.keep_fragments", "false"),
        ];
        fields.extend(seed.map(|seed| ("filter.seed", seed)));
        read(&fields).unwrap()
    }

    #[test]
    fn each_kind_reads_back() {
        for &(kind, _) in FilterKind::ALL {
            let all = read(&[
                ("filter.kind", kind),
                ("filter.capacity", "1000"),
                ("filter.error_rate", "0.01"),
                ("filter.expansion", "2"),
                ("filter.seed", "7"),
                ("filter.bit", "20"),
                ("filter.hash_number", "6"),
                ("filter.block_num", "3"),
                ("fingerprint.algorithm", "scrapy"),
                ("fingerprint.keep_fragments", "true"),
            ])
            .unwrap();
            assert_eq!(all.kind().name(), kind);
            let fields: BTreeMap<_, _> = all.fields().into_iter().collect();
            assert_eq!(FilterSpec::read(|name| fields.get(name).cloned()), Ok(all), "{kind}");
            for &name in fields.keys().filter(|&&name| name != "filter.seed") {
                let without = FilterSpec::read(|it| fields.get(it).filter(|_| it != name).cloned());
                let error = without.unwrap_err().to_string();
                assert_eq!(error, format!("{name} is missing, which is none"), "{kind}");
            }
        }
    }

    #[test]
    fn what_all_must_agree_on_differs_and_nothing_else() {
        let base = native("1000", Some("7"));
        let whats = |wanted: &FilterSpec| {
            base.differences(wanted).iter().map(|it| it.what).collect::<Vec<_>>()
        };
        assert_eq!(whats(&base), [] as [&str; 0]);
        assert_eq!(whats(&native("1000", None)), [] as [&str; 0], "any seed will do");
        assert_eq!(whats(&native("1000", Some("8"))), ["filter.seed"]);
        assert_eq!(whats(&native("1001", None)), ["filter.capacity"]);
        let set = FilterSpec { parameters: Parameters::Set, ..base };
        assert_eq!(whats(&set), ["filter.kind"]);
        assert_eq!(
            whats(&FilterSpec { keep_fragments: true, ..base }),
            ["fingerprint.keep_fragments"]
        );
        let other = FilterSpec { algorithm: Algorithm::ScrapyRedis, ..base };
        assert_eq!(
            base.differences(&other),
            [SpecDifference {
                what: "fingerprint.algorithm",
                found: "scrapy".to_owned(),
                wanted: "scrapy-redis".to_owned(),
            }]
        );
        let mut divided = base;
        let Parameters::Native { geometry, .. } = &mut divided.parameters else { panic!() };
        let more = geometry.blocks_per_part() + 1;
        *geometry = Geometry::new(geometry.blocks(), geometry.bits_per_block(), more).unwrap();
        assert_eq!(whats(&divided), [DIVISION]);
    }

    #[test]
    fn the_size_of_what_was_imported_is_nobodys_wish() {
        let [imported, reserved] = [Parameters::Imported, reserved()]
            .map(|parameters| FilterSpec { parameters, ..native("5", None) });
        assert_eq!(imported.differences(&reserved), []);
    }

    fn reserved() -> Parameters {
        let (capacity, error_rate) = size(1000, 0.01).unwrap();
        Parameters::RedisBloom(Reservation {
            capacity,
            error_rate,
            growth: Reservation::growth_of(2),
        })
    }
}
