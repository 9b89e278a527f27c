//! Kind `two-choice`: each key in one of two blocks, in the memory of this process. It grows, and
//! forgets keys.

use super::{
    CAPACITY, ERROR_RATE, EXPIRE_AFTER, GROW_TO, IN_REDIS, Kind, KindParameters, NATIVE,
    Parameters, Registered, SEED, Values, expire_after_field, partitions_field, seed_field,
    size_fields,
};
use crate::filter::choice::FilterPlace;
use crate::filter::expire_after::ExpireAfter;
use crate::filter::local::{OverFrozen, TwoChoiceFilter};
use crate::filter::spec::SpecError;
use crate::filter::two_choice::{KeyBits, TwoChoiceSize};
use crate::filter::{
    BuildError, Capacity, ErrorRate, FilterKind, KeyHasher, Outlook, SHARD_RULE, SHARDS, Seed,
};
use crate::fingerprint::PartitionCount;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "two-choice",
    keys: &[CAPACITY, ERROR_RATE, GROW_TO, EXPIRE_AFTER, SEED],
    places: &[FilterPlace::Local],
    grows: true,
    rules: ["murmur3-x64-128/h2/two-choice", SHARD_RULE],
    read,
    ..IN_REDIS
});

/// Name of the field in a storage folder's header with the number of bits of a key in its shard.
const KEY_BITS: &str = "filter.key_bits";

/// Names of the fields that record the size of a native filter below this one, and the names that
/// its kind has for them.
const FROZEN: [(&str, &str); 5] = [
    ("filter.frozen_capacity", "filter.capacity"),
    ("filter.frozen_error_rate", "filter.error_rate"),
    ("filter.frozen_blocks", "filter.blocks"),
    ("filter.frozen_bits_per_block", "filter.bits_per_block"),
    ("filter.frozen_blocks_per_part", "filter.blocks_per_part"),
];

#[derive(Debug, Clone)]
struct TwoChoiceParameters {
    /// Seed of the hash. `None` until a seed is chosen.
    seed: Option<Seed>,
    error_rate: ErrorRate,
    size: TwoChoiceSize,
    /// Time after which a fingerprint passes again, if fingerprints expire.
    expire_after: Option<ExpireAfter>,
    partitions: PartitionCount,
    /// The native filter below this one.
    frozen: Option<Parameters>,
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
    let expire_after = values.expire_after()?;
    let size = TwoChoiceSize { capacity, grow_to, bits, expires: expire_after.is_some() };
    let frozen = frozen(values)?;
    let parameters =
        TwoChoiceParameters { seed, error_rate, size, expire_after, partitions, frozen };
    Ok(Parameters::new(parameters))
}

/// Reads the parameters of the native filter below, if it is recorded.
fn frozen(values: &Values<'_>) -> Result<Option<Parameters>, SpecError> {
    let recorded = |name| FROZEN.iter().find(|(_, own)| *own == name).map_or(name, |(it, _)| *it);
    let value = |name| (values.value)(recorded(name));
    value(CAPACITY).map(|_| NATIVE.read(&value)).transpose()
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

impl TwoChoiceParameters {
    /// Divides a number of keys into those of the frozen filter and the others.
    fn split(&self, keys: u64) -> (u64, u64) {
        let below = self.frozen.as_ref().and_then(Parameters::capacity).unwrap_or(0);
        (keys.min(below), keys.saturating_sub(below))
    }
}

impl KindParameters for TwoChoiceParameters {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let size = size_fields(self.size.capacity, self.error_rate.get());
        let grow_to = (GROW_TO, self.size.grow_to.to_string());
        let own = [grow_to, expire_after_field(self.expire_after)];
        let fields = seed_field(self.seed).into_iter().chain(size).chain(own);
        fields.chain(partitions_field(self.partitions)).collect()
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        let bits = (KEY_BITS, self.size.bits.get().to_string());
        let below = self.frozen.iter().flat_map(|frozen| frozen.record());
        let below = below.filter_map(|(own, value)| {
            FROZEN.iter().find(|(_, name)| *name == own).map(|&(name, _)| (name, value))
        });
        self.fields().into_iter().chain([bits]).chain(below).collect()
    }

    /// A larger filter loads the keys of a smaller one.
    fn is_compared(&self, name: &str) -> bool {
        name != CAPACITY
    }

    /// The frozen filter counts as full.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let (below, own) = self.split(keys);
        let mut bytes = [self.size.bytes_at(own); 2];
        let mut error_rate = self.size.error_rate_at(own);
        if let Some(frozen) = &self.frozen {
            let frozen = frozen.outlook(below)?;
            bytes.iter_mut().zip(frozen.bytes).for_each(|(all, frozen)| *all += frozen);
            error_rate += frozen.error_rate;
        }
        Ok(Outlook { strings: 0, bits: 0, hashes: 0, bytes, error_rate, warning: None })
    }

    /// The error rate is proportional to the number of keys. It begins at the rate of the frozen
    /// filter.
    fn lost_urls(&self, keys: u64) -> Result<f64, SpecError> {
        let (below, own) = self.split(keys);
        let before = self.frozen.as_ref().map_or(Ok(0.0), |frozen| frozen.lost_urls(below))?;
        let (first, last) = (self.outlook(below)?.error_rate, self.outlook(keys)?.error_rate);
        Ok(before + own as f64 * f64::midpoint(first, last))
    }

    fn shape(&self) -> String {
        let bits = self.size.bits.get() + 8;
        let own = format!("it grows by itself, with {bits} bits of each key");
        let own = match self.expire_after {
            Some(expire_after) => format!("{own}; a URL passes again {}", expire_after.window()),
            None => own,
        };
        match &self.frozen {
            Some(_) => format!("{own}, over a frozen native filter"),
            None => own,
        }
    }

    fn frozen(&self) -> Option<&Parameters> {
        self.frozen.as_ref()
    }

    fn over(&self, frozen: &Parameters) -> Option<Parameters> {
        let (seed, frozen) = (frozen.seed(), Some(frozen.clone()));
        // The keys of a frozen filter have no generations.
        let fits = frozen.as_ref().is_some_and(|frozen| frozen.kind() == NATIVE)
            && self.expire_after.is_none();
        fits.then(|| Parameters::new(Self { seed, frozen, ..self.clone() }))
    }

    fn expire_after(&self) -> Option<ExpireAfter> {
        self.expire_after
    }

    fn seed(&self) -> Option<Seed> {
        self.seed
    }

    fn with_seed(&self, seed: Seed) -> Option<Parameters> {
        let frozen = self.frozen.as_ref().map(|frozen| frozen.reseeded(seed));
        Some(Parameters::new(Self { seed: Some(seed), frozen, ..self.clone() }))
    }

    fn partitions(&self) -> PartitionCount {
        self.partitions
    }

    fn hasher(&self) -> KeyHasher {
        let seed = self.seed.unwrap_or(Seed::new(0));
        KeyHasher::new(seed).with_bits(self.size.bits)
    }

    fn build(&self) -> Result<Box<dyn FilterKind>, BuildError> {
        let own = Box::new(TwoChoiceFilter::new(self.size)?);
        Ok(match &self.frozen {
            Some(frozen) => Box::new(OverFrozen::new(own, frozen.build()?)),
            None => own,
        })
    }
}
