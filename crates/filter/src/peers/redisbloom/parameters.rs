//! Parameters of a layer, which RedisBloom computes from capacity, error rate and options.

use bytemuck::Zeroable;

use crate::SpecError;
use crate::peers::redisbloom::TIGHTENING;
use crate::{Capacity, ErrorRate, KeyHash};

/// Parameters of a layer without its bits, as in its record.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, packed)]
pub(crate) struct LayerParameters {
    /// Length in bytes, a multiple of 8 below 2^60.
    pub(crate) bytes: u64,
    pub(crate) bits: u64,
    /// Number of items in the layer.
    pub(crate) size: u64,
    pub(crate) error_rate: f64,
    pub(crate) bits_per_item: f64,
    pub(crate) hashes: u32,
    pub(crate) capacity: u64,
    /// Exponent of a power of 2: the hashes are taken modulo this power. 0 if they are taken modulo
    /// the number of bits.
    pub(crate) power: u8,
}

/// Arguments of `BF.RESERVE`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// Number of fingerprints that the first layer is made for.
    pub capacity: Capacity,
    /// Error rate of all layers together.
    pub error_rate: ErrorRate,
    /// Factor by which the capacity grows from one layer to the next. 0 for a filter that does not
    /// grow.
    pub expansion: u32,
}

/// The options of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options(pub(crate) u32);

impl Options {
    /// Flag: layers have no more bits than they need.
    pub(crate) const EXACT: u32 = 1;
    /// Flag: hashes have 64 bits.
    pub(crate) const WIDE: u32 = 4;
    /// Flag: the filter does not grow.
    pub(crate) const FIXED: u32 = 8;

    /// Options of a growing filter, in all versions since 2.2.
    const SCALING: Self = Self(Self::EXACT | Self::WIDE);
    /// Options of a filter reserved with `NONSCALING`.
    const NONSCALING: Self = Self(Self::EXACT | Self::WIDE | Self::FIXED);

    /// Returns the options of a filter with this expansion; 0 stands for no growth.
    pub(crate) fn of(expansion: u32) -> Self {
        if expansion == 0 { Self::NONSCALING } else { Self::SCALING }
    }

    /// Returns true if each new layer rounds its number of bits up to a power of two, as in early
    /// versions.
    pub(crate) fn is_rounded(self) -> bool {
        self.0 & Self::EXACT == 0
    }

    /// Returns true if the filter does not grow.
    pub(crate) fn is_fixed(self) -> bool {
        self.0 & Self::FIXED != 0
    }
}

/// Natural logarithm of 2, in the digits of RedisBloom.
#[allow(clippy::approx_constant)]
const LN_2: f64 = 0.693_147_180_559_945;
/// Square of `LN_2`, in the digits of RedisBloom.
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;

impl LayerParameters {
    /// Returns the parameters of the first layer, of at most `limit` bytes.
    pub(crate) fn first(reservation: Reservation, limit: u64) -> Result<Self, SpecError> {
        let options = Options::of(reservation.expansion);
        let error_rate = reservation.error_rate.get();
        // The rates of all layers together must stay below the requested rate.
        let first = if options.is_fixed() { error_rate } else { error_rate * TIGHTENING };
        Self::within(limit, limit, reservation.capacity.get(), first, options)
    }

    /// Returns the parameters of a layer that takes at most `left` bytes. `limit` is the maximum
    /// for the whole filter.
    pub(crate) fn within(
        left: u64,
        limit: u64,
        capacity: u64,
        error_rate: f64,
        options: Options,
    ) -> Result<Self, SpecError> {
        if capacity == 0 {
            let why = "the capacity 0 of a RedisBloom filter holds no item; give at least 1";
            return Err(SpecError(why.to_owned()));
        }
        if error_rate <= 0.0 {
            return Err(SpecError(format!(
                "the error rate {error_rate:e} of a RedisBloom filter does not lie between 0 and 1"
            )));
        }
        let layer = Self::for_capacity(capacity, error_rate, options);
        layer.filter(|layer| layer.bytes <= left).ok_or_else(|| {
            SpecError(format!(
                "a RedisBloom layer for {capacity} items takes more than {limit} bytes, its limit"
            ))
        })
    }

    /// Returns the parameters that RedisBloom gives to a layer; `None` if its number of bits does
    /// not fit into 64 bits.
    pub(crate) fn for_capacity(capacity: u64, error_rate: f64, options: Options) -> Option<Self> {
        let bits_per_item = bits_per_item(error_rate);
        let wanted = capacity as f64 * bits_per_item;
        if wanted >= 2.0_f64.powi(63) {
            return None;
        }
        let mut layer = Self { error_rate, bits_per_item, capacity, ..Self::zeroed() };
        // The number of bits is whole, positive and below 2^63. There are at most 1075 hashes.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bits = {
            layer.hashes = hashes(bits_per_item) as u32;
            if options.is_rounded() {
                // The number of bits is a power of two above the wanted number. The additional bits
                // increase the capacity.
                layer.power = (exponent(wanted) + 1).clamp(0, 63) as u8;
                let bits = 1_u64 << layer.power;
                let spare = (bits as f64 - wanted) as u64;
                layer.capacity = capacity.checked_add((spare as f64 / bits_per_item) as u64)?;
                bits
            } else {
                (wanted as u64).max(1)
            }
        };
        layer.bytes = bits.div_ceil(64) * 8;
        layer.bits = 8 * layer.bytes;
        Some(layer)
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
