//! Kind `two-choice`: each key in one of two blocks, in the memory of this process. It grows, and
//! forgets keys.

use std::sync::Arc;

use crate::SpecError;
use crate::choice::FilterPlace;
use crate::expire_after::ExpireAfter;
use crate::kinds::kind::{
    CAPACITY, ERROR_RATE, GROW_TO, IN_REDIS, Kind, KindParameters, Registered, SEED, size_fields,
};
use crate::kinds::values::{EXPIRE_AFTER, Values, expire_after_field};
use crate::local::TwoChoiceFilter;
use crate::two_choice::{KeyBits, TwoChoiceSize};
use crate::{
    BuildError, Capacity, ErrorRate, FilterKind, KeyHasher, Outlook, SHARD_RULE, SHARDS, Seed,
};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "two-choice",
    keys: &[CAPACITY, ERROR_RATE, GROW_TO, EXPIRE_AFTER, SEED],
    places: &[FilterPlace::Local],
    grows: true,
    rules: ["murmur3-x64-128/h2/two-choice", SHARD_RULE],
    // A larger filter loads the keys of a smaller one.
    free: &[CAPACITY],
    frozen: &FROZEN,
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
    error_rate: ErrorRate,
    size: TwoChoiceSize,
    /// Time after which a fingerprint passes again, if fingerprints expire.
    expire_after: Option<ExpireAfter>,
}

fn read(values: &Values<'_>) -> Result<Arc<dyn KindParameters>, SpecError> {
    let (capacity, error_rate) = values.size()?;
    let grow_to = Capacity::new(values.part(GROW_TO)?)?;
    let (capacity, grow_to) = (capacity.get(), grow_to.max(capacity).get());
    let bits = match values.open(KEY_BITS)? {
        Some(bits) => bits,
        None => key_bits(grow_to, error_rate)?,
    };
    let expire_after = values.expire_after()?;
    let size = TwoChoiceSize { capacity, grow_to, bits, expires: expire_after.is_some() };
    Ok(Arc::new(TwoChoiceParameters { error_rate, size, expire_after }))
}

/// Returns the number of bits of a key in its shard. With `grow_to` keys in all shards, an unseen
/// key is then one of them with at most this error rate.
fn key_bits(grow_to: u64, error_rate: ErrorRate) -> Result<KeyBits, SpecError> {
    let keys = (grow_to as f64 / SHARDS as f64).max(1.0);
    let bits = (keys / error_rate.get()).log2().ceil();
    // A whole number of at most 72: 2^32 keys at 2^-40.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bits = bits as u32;
    KeyBits::new(bits).ok_or_else(|| {
        SpecError(format!(
            "filter.error_rate is {error_rate} and filter.grow_to is {grow_to}, and the kind \
             two-choice has too few bits of a key for both; raise filter.error_rate, or lower \
             filter.grow_to"
        ))
    })
}

impl KindParameters for TwoChoiceParameters {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let grow_to = (GROW_TO, self.size.grow_to.to_string());
        let own = [grow_to, expire_after_field(self.expire_after)];
        size_fields(self.size.capacity, self.error_rate.get()).into_iter().chain(own).collect()
    }

    fn derived(&self) -> Vec<(&'static str, String)> {
        vec![(KEY_BITS, self.size.bits.get().to_string())]
    }

    fn shape(&self) -> String {
        let bits = self.size.bits.get() + 8;
        let shape = format!("it grows by itself, with {bits} bits of each key");
        match self.expire_after {
            Some(expire_after) => format!("{shape}; a URL passes again {}", expire_after.window()),
            None => shape,
        }
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let (bytes, error_rate) = ([self.size.bytes_at(keys); 2], self.size.error_rate_at(keys));
        Ok(Outlook { bytes, error_rate, ..Outlook::default() })
    }

    fn hasher(&self, seed: Seed) -> KeyHasher {
        KeyHasher::new(seed).with_bits(self.size.bits)
    }

    fn build(&self, _: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        Some(TwoChoiceFilter::new(self.size).map(|filter| Box::new(filter) as _))
    }
}
