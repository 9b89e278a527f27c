//! A filter that is in Redis, where others can share it.

use std::borrow::Cow;

use super::layout::native::Native;
use super::layout::{BitPosition, BitStrings, PlacementError};
use super::{SHARDS, ShardId};
use crate::fingerprint::Fingerprint;

/// The Redis keys of one filter, of whatever layout, and what of them belongs to a fingerprint.
#[derive(Debug)]
pub struct RedisFilterKeys {
    base: String,
    placing: Placing,
}

/// How a fingerprint becomes something that Redis holds.
#[derive(Debug)]
pub enum Placing {
    /// Blocks of bits in a string for each shard, byte for byte as
    /// [`Shards::bytes`](super::Shards::bytes) has it.
    Blocks(Native),
    /// Bits of strings, as another project has them.
    Bits(Box<dyn BitStrings + Send + Sync>),
    /// Members of a set.
    Set,
}

impl RedisFilterKeys {
    /// The filter whose keys are named after `base`.
    pub fn new(base: impl Into<String>, placing: Placing) -> Self {
        Self { base: base.into(), placing }
    }

    /// What its keys are named after: `filter.key`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// How fingerprints are placed.
    pub fn placing(&self) -> &Placing {
        &self.placing
    }

    /// The numbers of the keys that ever hold anything, in order.
    pub fn used(&self) -> Vec<u32> {
        match &self.placing {
            Placing::Blocks(_) => ShardId::all().map(number).collect(),
            Placing::Bits(strings) => strings.used_strings(),
            Placing::Set => vec![0],
        }
    }

    /// The name of a key by its number.
    pub fn key(&self, number: u32) -> String {
        match &self.placing {
            Placing::Blocks(_) => format!("{}:{number:02x}", self.base),
            Placing::Bits(strings) => strings.key(&self.base, number),
            Placing::Set => self.base.clone(),
        }
    }

    /// The name of the key of a shard.
    pub fn key_of(&self, shard: ShardId) -> String {
        self.key(number(shard))
    }

    /// The length in bytes that a string grows to and never exceeds; `None` where it is none.
    pub fn max_bytes(&self, number: u32) -> Option<u64> {
        match &self.placing {
            Placing::Blocks(native) => Some(native.geometry().bytes() / SHARDS as u64),
            Placing::Bits(strings) => Some(strings.max_bytes(number)),
            Placing::Set => None,
        }
    }

    /// Refuses a fingerprint that the layout has no place for.
    ///
    /// # Errors
    /// It has none.
    pub fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // A digest has a place in each.
        let Fingerprint::Text(text) = fingerprint else { return Ok(()) };
        match &self.placing {
            Placing::Set if text.is_empty() => Err(PlacementError::Empty),
            Placing::Blocks(_) | Placing::Set => Ok(()),
            Placing::Bits(strings) => strings.push_positions(text, &mut Vec::new()),
        }
    }

    /// The fingerprint's bits; none where it is a member of a set.
    ///
    /// # Errors
    /// The layout has no place for it.
    pub fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let mut positions = Vec::new();
        match &self.placing {
            Placing::Blocks(native) => {
                let key_hash = native.key_hash(fingerprint);
                let string = number(key_hash.shard());
                // Redis counts from the highest bit of a byte on, a block from the lowest. A string
                // has at most 2^32 bits.
                #[allow(clippy::cast_possible_truncation)]
                let place = |bit| BitPosition { string, bit: (bit ^ 7) as u32 };
                positions.extend(native.positions(key_hash).map(place));
            }
            Placing::Bits(strings) => strings.push_positions(&text(fingerprint), &mut positions)?,
            Placing::Set => {}
        }
        Ok(positions)
    }

    /// How many fingerprints there are, and at what share of unseen ones the filter is wrong, where
    /// `fill` is the share of bits that are 1 in each of the [`RedisFilterKeys::used`] strings.
    /// Nothing of a set.
    pub fn estimate(&self, fill: &[f64]) -> Estimate {
        match &self.placing {
            Placing::Blocks(native) => {
                let geometry = native.geometry();
                let bits = geometry.shard_bits() as f64;
                let mut keys = [0; SHARDS];
                for (keys, fill) in keys.iter_mut().zip(fill) {
                    // A share of the bits.
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let ones = (fill * bits) as u64;
                    *keys = geometry.keys_from_ones(ones);
                }
                Estimate { keys: keys.iter().sum(), error_rate: geometry.error_rate_of(&keys) }
            }
            Placing::Bits(strings) => {
                let hashes = strings.spread_hashes();
                let keys = self.used().into_iter().zip(fill).map(|(string, fill)| {
                    let bits = strings.bits(string) as f64;
                    -bits / hashes * (-fill.min(1.0 - 1.0 / bits)).ln_1p()
                });
                // Not negative, and far below 2^64.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let keys = keys.sum::<f64>().round() as u64;
                Estimate { keys, error_rate: strings.error_rate(keys) }
            }
            Placing::Set => Estimate::default(),
        }
    }
}

/// What is known of a filter from how full it is.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Fingerprints in it.
    pub keys: u64,
    /// The share of unseen ones that it calls seen.
    pub error_rate: f64,
}

/// The number of a shard's string.
fn number(shard: ShardId) -> u32 {
    // Below 256.
    #[allow(clippy::cast_possible_truncation)]
    let number = shard.index() as u32;
    number
}

/// What other projects hash or hold: the hex digits of a digest, plain text as it is.
pub(crate) fn text(fingerprint: &Fingerprint) -> Cow<'_, [u8]> {
    match fingerprint {
        Fingerprint::Text(text) => Cow::Borrowed(text),
        digest => Cow::Owned(digest.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{BlockCluster, Imooc, PyreBloom};
    use super::super::{Blocks, Geometry, Seed};
    use super::*;

    #[test]
    fn keys_are_named_as_each_layout_has_them() {
        let native = Native::new(Seed::new(1), Geometry::new(Blocks::One, 9, 5).unwrap());
        let native = RedisFilterKeys::new("f", Placing::Blocks(native));
        assert_eq!((native.used().len(), native.key(0xab)), (256, "f:ab".to_owned()));
        assert_eq!(native.max_bytes(3), Some(320));
        let imooc =
            RedisFilterKeys::new("f", Placing::Bits(Box::new(Imooc::new(1000, 0.01).unwrap())));
        assert_eq!((imooc.used(), imooc.key(0)), (vec![0], "f_0".to_owned()));
        let set = RedisFilterKeys::new("f", Placing::Set);
        assert_eq!((set.used(), set.key(0), set.max_bytes(0)), (vec![0], "f".to_owned(), None));
    }

    #[test]
    fn what_has_no_place_is_refused_where_the_layout_needs_one() {
        let block = BlockCluster::new(20, 6, 4).unwrap();
        let block = RedisFilterKeys::new("f", Placing::Bits(Box::new(block)));
        assert!(block.check(&Fingerprint::Raw20([1; 20])).is_ok());
        let text = Fingerprint::from_text(b"zz");
        assert!(block.check(&text).is_err());
        assert!(RedisFilterKeys::new("f", Placing::Set).check(&text).is_ok());
    }

    #[test]
    fn keys_are_estimated_from_the_fill() {
        let pyre = PyreBloom::new(10_000, 0.01).unwrap();
        let (m, k) = (pyre.m() as f64, f64::from(pyre.hashes()));
        let fill = -(-k * 7000.0 / m).exp_m1();
        let shared = RedisFilterKeys::new("f", Placing::Bits(Box::new(pyre)));
        let Estimate { keys, error_rate } = shared.estimate(&[fill]);
        assert!((6990..=7010).contains(&keys), "{keys}");
        assert!((1e-4..1e-2).contains(&error_rate), "{error_rate}");
        assert_eq!(shared.estimate(&[0.0]).keys, 0);
    }
}
