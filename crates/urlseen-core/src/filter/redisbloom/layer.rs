//! One layer of a filter: a Bloom filter with its own capacity and error rate.

use super::error::ReserveError;
use super::header::{Options, Shape};
use super::rate::Rate;
use crate::filter::Cells;

/// One of the layers of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub(super) shape: Shape,
    /// Number of items in the layer.
    pub(super) size: u64,
    /// Number of bits that are 1.
    pub(super) ones: u64,
    /// Bit `x` is bit `x % 8`, from the lowest, of byte `x / 8`. The shape has their number; while
    /// the layer is loaded, there are fewer.
    pub(super) bits: Vec<u8>,
}

/// The natural logarithm of 2, in the digits of RedisBloom.
#[allow(clippy::approx_constant)]
const LN_2: f64 = 0.693_147_180_559_945;
/// The square of `LN_2`, in the digits of RedisBloom.
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;

/// The first seed of an item's hashes.
const SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// The two hashes of an item, from which its bits come. A filter knows an item only by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashes {
    a: u64,
    b: u64,
}

impl Hashes {
    /// Hashes an item once, for all operations on it.
    pub(crate) fn of(item: &[u8]) -> Self {
        let a = crate::filter::hash::murmur64a(item, SEED);
        Self { a, b: crate::filter::hash::murmur64a(item, a) }
    }

    /// Returns the two hashes as words.
    pub(crate) fn words(self) -> [u64; 2] {
        [self.a, self.b]
    }

    /// Restores hashes from their two words.
    pub fn from_words([a, b]: [u64; 2]) -> Self {
        Self { a, b }
    }
}

impl Shape {
    /// Returns the shape that RedisBloom gives to a layer; `None` if no 64-bit number has its bits.
    pub(super) fn for_capacity(capacity: u64, error_rate: f64, options: Options) -> Option<Self> {
        let bits_per_item = bits_per_item(error_rate);
        let wanted = capacity as f64 * bits_per_item;
        if wanted >= 2.0_f64.powi(63) {
            return None;
        }
        let mut shape = Self { bytes: 0, error_rate, bits_per_item, hashes: 0, capacity, power: 0 };
        // Whole, positive and below 2^63; the hashes are at most 1075.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits = {
            shape.hashes = hashes(bits_per_item) as u32;
            if options.is_rounded() {
                // A power of two above the wanted bits, and the items that the rest has room for.
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
        Some(shape)
    }

    /// Returns the number of positions that the hashes choose from.
    pub(super) fn modulus(&self) -> u64 {
        if self.power > 0 { 1 << self.power } else { self.bits() }
    }

    /// Iterates over the positions of an item's bits.
    #[inline]
    pub(super) fn positions(&self, Hashes { a, b }: Hashes) -> impl Iterator<Item = u64> + use<> {
        let modulus = self.modulus();
        (0..u64::from(self.hashes)).map(move |i| a.wrapping_add(i.wrapping_mul(b)) % modulus)
    }
}

/// Returns the bits that an item takes at an error rate.
pub(super) fn bits_per_item(error_rate: f64) -> f64 {
    (error_rate.ln() / LN_2_SQUARED).abs()
}

/// Returns the best number of hashes for this number of bits per item.
pub(super) fn hashes(bits_per_item: f64) -> f64 {
    (LN_2 * bits_per_item).ceil()
}

/// Returns the exponent of a positive number that is not subnormal.
fn exponent(number: f64) -> i64 {
    // The exponent has 11 bits.
    #[allow(clippy::cast_possible_wrap)]
    let biased = (number.to_bits() >> 52 & 0x7ff) as i64;
    biased - 1023
}

impl Layer {
    /// Builds an empty layer of a shape.
    pub(super) fn new(shape: Shape) -> Result<Self, ReserveError> {
        let refused = ReserveError::Memory { bytes: shape.bytes };
        let bytes = usize::try_from(shape.bytes).map_err(|_| refused.clone())?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(bytes).map_err(|_| refused)?;
        bits.resize(bytes, 0);
        Ok(Self { shape, size: 0, ones: 0, bits })
    }

    /// Returns the number of items that the layer is made for.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity
    }

    /// Returns the number of items added to the layer.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the error rate that the layer is made for.
    pub(crate) fn error_rate(&self) -> f64 {
        self.shape.error_rate
    }

    /// Returns the number of the layer's bits.
    pub fn bits(&self) -> u64 {
        self.shape.bits()
    }

    /// Returns the number of bits, from the first on, that can be set.
    pub fn reach(&self) -> u64 {
        self.shape.modulus()
    }

    /// Returns all bits: bit `x` is bit `x % 8`, from the lowest, of byte `x / 8`.
    pub fn bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Estimates the number of items of this layer and another one of the same shape together.
    pub(super) fn united_size(&self, other: &Self) -> u64 {
        let ones = self.bits.iter().zip(&other.bits);
        let ones = ones.map(|(own, other)| u64::from((own | other).count_ones())).sum();
        // The number is not negative, and far below 2^64.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let estimate = self.cells().keys(ones).round() as u64;
        estimate.clamp(self.size.max(other.size), self.size + other.size)
    }

    /// Adds the bits of a layer of the same shape. From then on, the layer counts `size` items.
    pub(super) fn unite(&mut self, other: &Self, size: u64) {
        for (byte, other) in self.bits.iter_mut().zip(&other.bits) {
            *byte |= other;
        }
        self.ones = self.bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
        self.size = size;
    }

    /// Returns the distribution of the bits that items choose.
    pub(in crate::filter) fn cells(&self) -> Cells {
        Cells::string(self.reach(), self.hashes().into())
    }

    /// Returns the number of bits that an item sets.
    pub fn hashes(&self) -> u32 {
        self.shape.hashes
    }

    /// Returns the number of bits that are 1.
    pub fn ones(&self) -> u64 {
        self.ones
    }

    /// Returns the current share of unseen items that the layer reports as seen.
    pub(crate) fn rate_now(&self) -> Rate {
        self.shape.rate(self.ones as f64 / self.shape.modulus() as f64, self.size)
    }

    /// Returns the number of items that the layer has room for.
    pub(super) fn room(&self) -> u64 {
        self.shape.capacity - self.size.min(self.shape.capacity)
    }

    pub(super) fn is_full(&self) -> bool {
        self.size >= self.shape.capacity
    }

    pub(super) fn contains(&self, hashes: Hashes) -> bool {
        self.places(hashes).all(|(byte, mask)| self.bits[byte] & mask != 0)
    }

    pub(super) fn set(&mut self, hashes: Hashes) {
        for (byte, mask) in self.places(hashes) {
            let byte = &mut self.bits[byte];
            self.ones += u64::from(*byte & mask == 0);
            *byte |= mask;
        }
        self.size += 1;
    }

    /// Iterates over the byte, and the bit in it, of each position.
    fn places(&self, hashes: Hashes) -> impl Iterator<Item = (usize, u8)> + use<> {
        self.shape.positions(hashes).map(|bit| {
            // All bytes of the layer are in memory.
            #[allow(clippy::cast_possible_truncation)]
            let byte = (bit / 8) as usize;
            (byte, 1 << (bit % 8))
        })
    }
}
