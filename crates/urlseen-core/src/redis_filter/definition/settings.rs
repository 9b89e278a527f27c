//! What a filter in Redis is to be.

use crate::filter::choice::FilterKind;
use crate::filter::layout::{
    BitStrings, BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter, SizeError,
};
use crate::filter::native::Native;
use crate::filter::{
    Capacity, CapacityError, ErrorRate, ErrorRateError, Placing, RedisFilterKeys, Seed, Sizing,
};
use crate::fingerprint::Algorithm;

/// What a filter in Redis is to be: the keys of the configuration that it depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What its keys are named after: `filter.key`.
    pub key: String,
    /// How a fingerprint becomes what Redis holds.
    pub kind: FilterKind,
    /// Fingerprints that it is made for, in kinds that are sized by that.
    pub capacity: u64,
    /// At which error rate.
    pub error_rate: f64,
    /// The seed of `native`'s hash; drawn where there is none.
    pub seed: Option<Seed>,
    /// `filter.bit`, for kinds that are sized by it.
    pub bit: u32,
    /// `filter.hash_number`, for the same.
    pub hash_number: u32,
    /// `filter.block_num`, for `scrapy-redis-bloomfilter-block-cluster`.
    pub block_num: u32,
    /// How the fingerprints in it are computed.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in what follows `#` are different.
    pub keep_fragments: bool,
}

/// Why there is no such filter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The kind cannot be that large, or that small.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Nor can any.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// As little as that.
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
        kind: &'static str,
        /// What was asked for.
        capacity: u64,
    },
}

impl Settings {
    /// Those of urlseen's own kind, for Scrapy's fingerprints; all else as configured by default.
    pub fn native(key: impl Into<String>, capacity: u64, error_rate: f64) -> Self {
        Self {
            key: key.into(),
            kind: FilterKind::Native,
            capacity,
            error_rate,
            seed: None,
            bit: 30,
            hash_number: 6,
            block_num: 1,
            algorithm: Algorithm::Scrapy,
            keep_fragments: false,
        }
    }

    /// How large a native one is.
    ///
    /// # Errors
    /// No filter has that capacity or error rate.
    pub fn sizing(&self) -> Result<Sizing, SpecError> {
        Ok(Sizing::new(Capacity::new(self.capacity)?, ErrorRate::new(self.error_rate)?))
    }

    /// Where it has its bits in strings, if its kind is one that does.
    ///
    /// # Errors
    /// The kind cannot be what is set.
    pub fn bit_strings(&self) -> Result<Option<Box<dyn BitStrings + Send + Sync>>, SpecError> {
        let Self { capacity, error_rate, bit, hash_number, block_num, .. } = *self;
        let few = || {
            let kind = self.kind.name();
            u32::try_from(capacity).map_err(|_| SpecError::TooMany { kind, capacity })
        };
        Ok(Some(match self.kind {
            FilterKind::Imooc => Box::new(Imooc::new(capacity, error_rate)?),
            FilterKind::PyreBloom => Box::new(PyreBloom::new(few()?, error_rate)?),
            FilterKind::Luw2007 => Box::new(PyreBloom::unrounded(few()?, error_rate)?),
            FilterKind::ScrapyRedisBloomFilter => {
                Box::new(ScrapyRedisBloomFilter::new(bit, hash_number)?)
            }
            FilterKind::BlockCluster => Box::new(BlockCluster::new(bit, hash_number, block_num)?),
            FilterKind::Native | FilterKind::ScrapyRedis | FilterKind::RedisBloom => {
                return Ok(None);
            }
        }))
    }

    /// The filter's keys, and how it places fingerprints, where its hash has this seed.
    ///
    /// # Errors
    /// There is no such filter.
    pub fn filter(&self, seed: Seed) -> Result<RedisFilterKeys, SpecError> {
        let placing = match (self.kind, self.bit_strings()?) {
            (_, Some(strings)) => Placing::Bits(strings),
            (FilterKind::Native, _) => {
                Placing::Blocks(Native::new(seed, self.sizing()?.geometry()))
            }
            (FilterKind::ScrapyRedis, _) => Placing::Set,
            (_, None) => return Err(SpecError::NotInRedis),
        };
        Ok(RedisFilterKeys::new(&self.key, placing))
    }
}
