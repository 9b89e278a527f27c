//! Layer of a filter: a Bloom filter with its own capacity and error rate.

use bytemuck::Zeroable;

use crate::key_hash::murmur64a;
use crate::peers::redisbloom::ReserveError;
use crate::peers::redisbloom::TIGHTENING;
use crate::peers::redisbloom::header::{Options, Shape};
use crate::peers::redisbloom::rate::Rate;
use crate::{KeyHash, ShardId};

/// Layer of a filter, with its bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub(crate) shape: Shape,
    /// Number of bits that are 1.
    pub(crate) ones: u64,
    /// Bytes of the layer. Bit `x` is bit `x % 8`, from the lowest, of byte `x / 8`. A layer that
    /// is still being loaded has fewer bytes than its shape says.
    pub(crate) bits: Vec<u8>,
}

/// Natural logarithm of 2, in the digits of RedisBloom.
#[allow(clippy::approx_constant)]
const LN_2: f64 = 0.693_147_180_559_945;
/// Square of `LN_2`, in the digits of RedisBloom.
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;

/// Seed of the first hash of an item.
const SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// Computes both hashes of an item, from which its bit positions are computed.
pub(crate) fn key_hash(item: &[u8]) -> KeyHash {
    let h1 = murmur64a(item, SEED);
    KeyHash { h1, h2: murmur64a(item, h1), shard: ShardId::WHOLE, kept: None }
}

impl Shape {
    /// Returns the shape of the first layer, of at most `limit` bytes.
    pub(crate) fn first(
        error_rate: f64,
        capacity: u64,
        options: Options,
        limit: u64,
    ) -> Result<Self, ReserveError> {
        // The rates of all layers together must stay below the requested rate.
        let first = if options.is_fixed() { error_rate } else { error_rate * TIGHTENING };
        if !(first > 0.0 && error_rate < 1.0) {
            return Err(ReserveError::ErrorRate(error_rate));
        }
        Self::within(limit, limit, capacity, first, options)
    }

    /// Returns the shape of a layer that takes at most `left` bytes. `limit` is the maximum for the
    /// whole filter.
    pub(crate) fn within(
        left: u64,
        limit: u64,
        capacity: u64,
        error_rate: f64,
        options: Options,
    ) -> Result<Self, ReserveError> {
        if capacity == 0 {
            return Err(ReserveError::Capacity);
        }
        if error_rate <= 0.0 {
            return Err(ReserveError::ErrorRate(error_rate));
        }
        Self::for_capacity(capacity, error_rate, options)
            .filter(|shape| shape.bytes <= left)
            .ok_or(ReserveError::TooLarge { capacity, limit })
    }

    /// Returns the shape that RedisBloom gives to a layer; `None` if its number of bits does not
    /// fit into 64 bits.
    pub(crate) fn for_capacity(capacity: u64, error_rate: f64, options: Options) -> Option<Self> {
        let bits_per_item = bits_per_item(error_rate);
        let wanted = capacity as f64 * bits_per_item;
        if wanted >= 2.0_f64.powi(63) {
            return None;
        }
        let mut shape = Self { error_rate, bits_per_item, capacity, ..Self::zeroed() };
        // The number of bits is whole, positive and below 2^63. There are at most 1075 hashes.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits = {
            shape.hashes = hashes(bits_per_item) as u32;
            if options.is_rounded() {
                // The number of bits is a power of two above the wanted number. The additional bits
                // increase the capacity.
                shape.power = (exponent(wanted) + 1).clamp(0, 63) as u8;
                let bits = 1_u64 << shape.power;
                let spare = (bits as f64 - wanted) as u64;
                shape.capacity = capacity.checked_add((spare as f64 / bits_per_item) as u64)?;
                bits
            } else {
                (wanted as u64).max(1)
            }
        };
        shape.bytes = bits.div_ceil(64) * 8;
        shape.bits = 8 * shape.bytes;
        Some(shape)
    }

    /// Returns the number of positions from which the hashes choose.
    pub(crate) fn modulus(&self) -> u64 {
        if self.power > 0 { 1 << self.power } else { self.bits }
    }

    /// Iterates over the bit positions of an item.
    #[inline]
    pub(crate) fn positions(&self, key_hash: KeyHash) -> impl Iterator<Item = u64> + use<> {
        let KeyHash { h1, h2, .. } = key_hash;
        let modulus = self.modulus();
        (0..u64::from(self.hashes)).map(move |i| h1.wrapping_add(i.wrapping_mul(h2)) % modulus)
    }
}

/// Returns the number of bits for each item at an error rate.
pub(crate) fn bits_per_item(error_rate: f64) -> f64 {
    (error_rate.ln() / LN_2_SQUARED).abs()
}

/// Returns the best number of hashes for this number of bits per item.
pub(crate) fn hashes(bits_per_item: f64) -> f64 {
    (LN_2 * bits_per_item).ceil()
}

/// Returns the binary exponent of a positive number that is not subnormal.
fn exponent(number: f64) -> i64 {
    // The exponent has 11 bits.
    #[allow(clippy::cast_possible_wrap)]
    let biased = (number.to_bits() >> 52 & 0x7ff) as i64;
    biased - 1023
}

impl Layer {
    /// Allocates an empty layer of a shape.
    pub(crate) fn new(shape: Shape) -> Result<Self, ReserveError> {
        let refused = ReserveError::Memory { bytes: shape.bytes };
        let bytes = usize::try_from(shape.bytes).map_err(|_| refused.clone())?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(bytes).map_err(|_| refused)?;
        bits.resize(bytes, 0);
        Ok(Self { shape, ones: 0, bits })
    }

    /// Returns the number of bits of the layer.
    pub fn bits(&self) -> u64 {
        self.shape.bits
    }

    /// Returns the number of bits that an item sets.
    pub fn hashes(&self) -> u32 {
        self.shape.hashes
    }

    /// Returns the current error rate of the layer.
    pub(crate) fn rate_now(&self) -> Rate {
        self.shape.rate(self.ones as f64 / self.shape.modulus() as f64, self.shape.size)
    }

    /// Returns the number of further items for which the layer has room.
    pub(crate) fn room(&self) -> u64 {
        self.shape.capacity.saturating_sub(self.shape.size)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.shape.size >= self.shape.capacity
    }

    pub(crate) fn contains(&self, key_hash: KeyHash) -> bool {
        self.places(key_hash).all(|(byte, mask)| self.bits[byte] & mask != 0)
    }

    pub(crate) fn set(&mut self, key_hash: KeyHash) {
        for (byte, mask) in self.places(key_hash) {
            let byte = &mut self.bits[byte];
            self.ones += u64::from(*byte & mask == 0);
            *byte |= mask;
        }
        self.shape.size += 1;
    }

    /// Iterates over the positions of an item: the index of the byte, and the mask of the bit.
    fn places(&self, key_hash: KeyHash) -> impl Iterator<Item = (usize, u8)> + use<> {
        self.shape.positions(key_hash).map(|bit| {
            // All bytes of the layer are in memory.
            #[allow(clippy::cast_possible_truncation)]
            let byte = (bit / 8) as usize;
            (byte, 1 << (bit % 8))
        })
    }
}
