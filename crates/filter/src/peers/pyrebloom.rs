//! Layout of pyreBloom, a Python extension in C.
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
//! pyreBloom rounds `p` to a C float. A string has 2^32 - 1 bits, not 2^32.
//!
//! The Python package `bloomfilter` of luw2007 uses pyreBloom. Later versions of that package use a
//! port that does not round `p`. For many large capacities, the rounding changes `m`. pyreBloom and
//! the port then set different bits for the same key. [`unrounded`] is the layout of the
//! port.
//!
//! pyreBloom counts its strings in C floats. If the last string has only very few bits, pyreBloom
//! does not count that string. pyreBloom then reads the string's name from memory after the end of
//! an array. This layout uses the intended name.

use crate::SpecError;
use crate::key_hash::murmur64a;
use crate::kinds::kind::{IN_REDIS, Kind, Registered};
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, BitStrings, Place, rate};

/// Entry of pyreBloom's kind.
pub(crate) const PYREBLOOM: Kind = Kind(&Registered {
    name: NAME,
    read: |values| values.by_size(|keys, rate| rounded(few(PYREBLOOM, keys)?, rate)),
    ..IN_REDIS
});

/// Entry of the kind of the port in luw2007's `bloomfilter`.
pub(crate) const LUW2007: Kind = Kind(&Registered {
    name: "luw2007-bloomfilter",
    read: |values| values.by_size(|keys, rate| unrounded(few(LUW2007, keys)?, rate)),
    ..IN_REDIS
});

/// Checks that a capacity is below 2^32.
fn few(kind: Kind, capacity: u64) -> Result<u32, SpecError> {
    u32::try_from(capacity).map_err(|_| {
        SpecError(format!(
            "filter.capacity is {capacity}, and the kind {kind} is made for at most {} \
             fingerprints; lower filter.capacity, or use another kind",
            u32::MAX
        ))
    })
}

const NAME: &str = "pyrebloom";

/// Number of bits of a string.
const STRING: u64 = u32::MAX as u64;

/// Computes the layout for a capacity in keys and an error rate, as pyreBloom does.
///
/// # Errors
/// The capacity is 0, or the error rate as a C float is not between 0 and 1. The error rate may
/// also be so close to 1 that the filter would have no bit.
pub(crate) fn rounded(capacity: u32, error_rate: f64) -> Result<BitStrings, SpecError> {
    // pyreBloom rounds the rate in the same way.
    #[allow(clippy::cast_possible_truncation)]
    let rounded = error_rate as f32;
    unrounded(capacity, rounded.into())
}

/// Computes the layout without rounding the error rate, as the port in luw2007's `bloomfilter`
/// does.
///
/// # Errors
/// The same errors as [`rounded`].
pub(crate) fn unrounded(capacity: u32, error_rate: f64) -> Result<BitStrings, SpecError> {
    SpecError::check_size(NAME, capacity.into(), error_rate)?;
    let keys = f64::from(capacity);
    let ln_2 = std::f64::consts::LN_2;
    let m = whole(-(error_rate.ln() * keys) / (ln_2 * ln_2));
    if m == 0 {
        let allowed = format!("with the capacity {capacity}, the filter would have no bit");
        return Err(SpecError::of_setting(NAME, "the error rate", error_rate, allowed));
    }
    let k = u32::try_from(whole((ln_2 * m as f64 / keys).ceil())).expect("at most 1075");
    Ok(BitStrings {
        strings: u32::try_from(m.div_ceil(STRING)).expect("at most 1550 strings"),
        separator: Some("."),
        longest: STRING,
        // The bits of a key are in all strings: (1 - (1 - 1/m)^(k n))^k.
        rate: |layout, keys| rate(keys as f64, layout.hashes, layout.m as f64),
        ..BitStrings::new(m, k, PLACE)
    })
}

/// Returns the seeds of the hashes, in order.
pub(crate) fn seeds(layout: &BitStrings) -> impl Iterator<Item = u32> {
    let next = |x: &u32| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(314_159_265), next).take(layout.hashes as usize)
}

const PLACE: Place = |layout, text, positions| {
    positions.extend(seeds(layout).map(|seed| {
        let position = murmur64a(text, seed.into()) % layout.m;
        // The string's number is below 1550, and the bit's number below 2^32 - 1.
        #[allow(clippy::cast_possible_truncation)]
        let place = ((position / STRING) as u32, (position % STRING) as u32);
        BitPosition { string: place.0, bit: place.1 }
    }));
    Ok(())
};
