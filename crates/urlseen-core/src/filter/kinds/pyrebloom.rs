//! The layout of pyreBloom, a Python extension in C.
//!
//! ```text
//! m = floor(-ln p n / (ln 2)^2)         bits, for n keys at error rate p
//! k = ceil(ln 2 m / n)                  hashes
//! seeds: 314159265, then x = 1664525 x + 1013904223 mod 2^32
//! position = MurmurHash64A(text, seed) mod m
//! key    KEY.i, i = position div (2^32 - 1)
//! bit    position mod (2^32 - 1)
//! ```
//!
//! `p` passes through a C float on its way in. A string has 2^32 - 1 bits, not 2^32.
//!
//! The Python package `bloomfilter` of luw2007 uses pyreBloom. Its later versions use a port that
//! does not round `p`. With most large capacities, that makes another `m`. Then the two do not find
//! each other's bits: [`PyreBloom::unrounded`] is the port's.
//!
//! pyreBloom counts its strings in C floats. If m is very little more than a whole number of
//! strings holds, it counts one string too few. Then it reads the last one's name from after the
//! end of its array. Here that string has the intended name.

use std::sync::Arc;

use super::sized::{BySize, Made, SIZE};
use super::{Kind, Registered};
use crate::filter::choice::FilterPlace;
use crate::filter::hash::murmur64a;
use crate::filter::layout::bit_strings::rate_of_shares;
use crate::filter::layout::{BitPosition, BitStrings, PlacementError, SizeError};
use crate::filter::redis_kind::InStrings;
use crate::filter::spec::SpecError;

/// Entry of pyreBloom's kind.
pub(super) const PYREBLOOM: Kind = Kind(&Registered {
    name: "pyrebloom",
    short: "pyrebloom",
    summary: "that of pyreBloom",
    keys: SIZE,
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |values| {
        let make = |capacity, rate| make(PyreBloom::new(few(PYREBLOOM, capacity)?, rate));
        Ok(BySize::read(values, PYREBLOOM, make)?.into())
    },
});

/// Entry of the kind of the port in luw2007's `bloomfilter`.
pub(super) const LUW2007: Kind = Kind(&Registered {
    name: "luw2007-bloomfilter",
    short: "luw2007-bloomfilter",
    summary: "that of luw2007's bloomfilter, which is pyreBloom's but for a rounding",
    keys: SIZE,
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |values| {
        let make = |capacity, rate| make(PyreBloom::unrounded(few(LUW2007, capacity)?, rate));
        Ok(BySize::read(values, LUW2007, make)?.into())
    },
});

fn make(layout: Result<PyreBloom, SizeError>) -> Made {
    Ok(Arc::new(InStrings(layout?)))
}

/// Checks that a capacity has at most 32 bits.
fn few(kind: Kind, capacity: u64) -> Result<u32, SpecError> {
    u32::try_from(capacity).map_err(|_| SpecError::TooMany { kind, capacity })
}

const NAME: &str = "pyrebloom";

/// Number of bits of a string.
const STRING: u64 = u32::MAX as u64;

/// The layout of pyreBloom.
#[derive(Debug, Clone, PartialEq)]
pub struct PyreBloom {
    error_rate: f64,
    m: u64,
    seeds: Vec<u32>,
}

impl PyreBloom {
    /// Makes the layout for a capacity in keys and an error rate, like the class.
    ///
    /// # Errors
    /// If the capacity is 0, or the error rate is not between 0 and 1 as a C float. Also if the
    /// rate is so close to 1 that no bit is left for so few keys.
    pub fn new(capacity: u32, error_rate: f64) -> Result<Self, SizeError> {
        // The project itself rounds it so.
        #[allow(clippy::cast_possible_truncation)]
        let rounded = error_rate as f32;
        Self::unrounded(capacity, rounded.into())
    }

    /// Makes the layout for an error rate without rounding, like the port in luw2007's
    /// `bloomfilter`.
    ///
    /// # Errors
    /// As [`PyreBloom::new`].
    pub fn unrounded(capacity: u32, error_rate: f64) -> Result<Self, SizeError> {
        if capacity == 0 {
            return Err(SizeError::new(NAME, "the capacity", capacity, "it is 1 or more"));
        }
        SizeError::check_error_rate(NAME, error_rate)?;
        let keys = f64::from(capacity);
        let ln_2 = std::f64::consts::LN_2;
        // Whole and positive; at most 2^32 keys of 1550 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let m = (-(error_rate.ln() * keys) / (ln_2 * ln_2)) as u64;
        if m == 0 {
            let allowed = format!("for a capacity of {capacity} it leaves not a single bit");
            return Err(SizeError::new(NAME, "the error rate", error_rate, allowed));
        }
        // Whole and positive; at most 1075.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let k = (ln_2 * m as f64 / keys).ceil() as usize;
        let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let seeds = std::iter::successors(Some(314_159_265), next).take(k).collect();
        Ok(Self { error_rate, m, seeds })
    }

    /// Returns m, the number of all bits.
    pub fn m(&self) -> u64 {
        self.m
    }

    /// Returns the seeds of the hashes, in order.
    #[cfg(test)]
    pub(crate) fn seeds(&self) -> &[u32] {
        &self.seeds
    }
}

impl BitStrings for PyreBloom {
    fn strings(&self) -> u32 {
        // There are at most 1550 strings.
        #[allow(clippy::cast_possible_truncation)]
        let strings = self.m.div_ceil(STRING) as u32;
        strings
    }

    fn key(&self, base: &str, string: u32) -> String {
        format!("{base}.{string}")
    }

    fn bits(&self, string: u32) -> u64 {
        self.m.saturating_sub(u64::from(string) * STRING).min(STRING)
    }

    fn hashes(&self) -> u32 {
        // There are at most 1075 hashes.
        #[allow(clippy::cast_possible_truncation)]
        let k = self.seeds.len() as u32;
        k
    }

    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError> {
        positions.extend(self.seeds.iter().map(|&seed| {
            let position = murmur64a(text, seed.into()) % self.m;
            // Below 1550, and below 2^32 - 1.
            #[allow(clippy::cast_possible_truncation)]
            let place = ((position / STRING) as u32, (position % STRING) as u32);
            BitPosition { string: place.0, bit: place.1 }
        }));
        Ok(())
    }

    /// Returns (1 - (1 - 1/m)^(k n))^k.
    fn error_rate(&self, keys: u64) -> f64 {
        rate_of_shares(std::iter::once(1.0), keys, self.hashes(), self.m as f64)
    }
}
