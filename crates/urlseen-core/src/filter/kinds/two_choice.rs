//! Kind `two-choice`: each key in one of two blocks, in the memory of this process. It grows, and
//! forgets keys.

use super::{
    CAPACITY, ERROR_RATE, IN_REDIS, Kind, KindParameters, Parameters, Registered, SEED, Values,
    partitions_field, seed_field, size_fields,
};
use crate::filter::choice::FilterPlace;
use crate::filter::local::TwoChoiceFilter;
use crate::filter::spec::SpecError;
use crate::filter::two_choice::{KeyBits, TwoChoiceSize};
use crate::filter::{
    BLOCK_BYTES, BuildError, Capacity, ErrorRate, FilterKind, KeyHasher, Outlook, SHARD_RULE,
    SHARDS, Seed,
};
use crate::fingerprint::PartitionCount;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "two-choice",
    summary: "urlseen's own: grows, forgets, and keeps its error rate up to filter.grow_to",
    keys: &[CAPACITY, ERROR_RATE, GROW_TO, SEED],
    places: &[FilterPlace::Local],
    grows: true,
    rules: ["murmur3-x64-128/h2/two-choice", SHARD_RULE],
    read,
    ..IN_REDIS
});

/// Number of fingerprints up to which the error rate holds.
const GROW_TO: &str = "filter.grow_to";

/// Name of the field in a storage folder's header with the number of bits of a key in its shard.
const KEY_BITS: &str = "filter.key_bits";

#[derive(Debug, Clone, Copy)]
struct TwoChoiceParameters {
    /// Seed of the hash. `None` until a seed is chosen.
    seed: Option<Seed>,
    error_rate: ErrorRate,
    size: TwoChoiceSize,
    partitions: PartitionCount,
}

fn read(values: &Values<'_>) -> Result<Parameters, SpecError> {
    let (seed, partitions) = (values.seed()?, values.partitions()?);
    let (capacity, error_rate) = values.size()?;
    let grow_to = Capacity::new(values.part(GROW_TO)?)?;
    let (capacity, grow_to) = (capacity.get(), grow_to.max(capacity).get());
    let bits = match values.open(KEY_BITS)? {
        Some(bits) => bits,
        None => key_bits(grow_to, error_rate)?,
    };
    let size = TwoChoiceSize { capacity, grow_to, bits };
    Ok(Parameters::new(TwoChoiceParameters { seed, error_rate, size, partitions }))
}

/// Returns the number of bits of a key in its shard. With `grow_to` keys in all shards, an unseen
/// key is then one of them with at most this error rate.
fn key_bits(grow_to: u64, error_rate: ErrorRate) -> Result<KeyBits, SpecError> {
    let keys = (grow_to as f64 / SHARDS as f64).max(1.0);
    let bits = (keys / error_rate.get()).log2().ceil();
    // A whole number of at most 72: 2^32 keys at 2^-40.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bits = bits as u32;
    KeyBits::new(bits).ok_or(SpecError::KeyBits { grow_to, error_rate: error_rate.get() })
}

impl KindParameters for TwoChoiceParameters {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let size = size_fields(self.size.capacity, self.error_rate.get());
        let grow_to = (GROW_TO, self.size.grow_to.to_string());
        let fields = seed_field(self.seed).into_iter().chain(size).chain([grow_to]);
        fields.chain(partitions_field(self.partitions)).collect()
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        let bits = (KEY_BITS, self.size.bits.get().to_string());
        self.fields().into_iter().chain([bits]).collect()
    }

    /// A larger filter loads the keys of a smaller one.
    fn is_compared(&self, name: &str) -> bool {
        name != CAPACITY
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let full = self.size.blocks_at(keys.max(self.size.capacity)) * u64::from(BLOCK_BYTES);
        let bytes = [full, full / 4 * 5];
        let error_rate = self.size.error_rate_at(keys);
        Ok(Outlook { strings: 0, bits: 0, hashes: 0, bytes, error_rate, warning: None })
    }

    /// The error rate is proportional to the number of keys.
    fn lost_urls(&self, keys: u64) -> Result<f64, SpecError> {
        Ok(keys as f64 / 2.0 * self.size.error_rate_at(keys))
    }

    fn shape(&self) -> String {
        format!("it grows by itself, with {} bits of each key", self.size.bits.get() + 8)
    }

    fn seed(&self) -> Option<Seed> {
        self.seed
    }

    fn with_seed(&self, seed: Seed) -> Option<Parameters> {
        Some(Parameters::new(Self { seed: Some(seed), ..*self }))
    }

    fn partitions(&self) -> PartitionCount {
        self.partitions
    }

    fn hasher(&self) -> KeyHasher {
        let seed = self.seed.unwrap_or(Seed::new(0));
        KeyHasher::new(seed, self.partitions).with_bits(self.size.bits)
    }

    fn build(&self, owner: usize, owners: usize) -> Result<Box<dyn FilterKind>, BuildError> {
        Ok(Box::new(TwoChoiceFilter::new(self.size, owner, owners)?))
    }
}
