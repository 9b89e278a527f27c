//! The layout of the Python package `scrapy-redis-bloomfilter`.
//!
//! ```text
//! m = 2^BIT                             bits of the one string
//! seeds: 0 to HASH_NUMBER - 1
//! bit    for each character h = h (seed + 1) + its code; then h mod m
//! key    KEY
//! ```
//!
//! With seed 0 the hash is the plain sum of the characters: a number around 2800 for any
//! fingerprint. Those few bits are all set after some thousand keys, and that hash tells nothing.

use std::sync::Arc;

use super::sized::{ByNumbers, Made};
use super::{BIT, HASH_NUMBER, Kind, Registered};
use crate::filter::choice::FilterPlace;
use crate::filter::layout::bit_strings::fill;
use crate::filter::layout::{BitPosition, BitStrings, PlacementError, SizeError};
use crate::filter::redis_kind::InStrings;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis-bloomfilter",
    short: "scrapy-redis-bloomfilter",
    summary: "that of scrapy-redis-bloomfilter",
    keys: &[BIT, HASH_NUMBER],
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |values| Ok(ByNumbers::read(values, KIND, make)?.into()),
});

fn make([bit, hash_number]: [u32; 2]) -> Made {
    Ok(Arc::new(InStrings(ScrapyRedisBloomFilter::new(bit, hash_number)?)))
}

const NAME: &str = "scrapy-redis-bloomfilter";

/// Most hashes. Each makes a test slower, and far fewer give the best error rate.
const MOST_HASHES: u32 = 1000;

/// Number of characters of a fingerprint.
const DIGITS: usize = 40;

/// The layout of `scrapy-redis-bloomfilter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrapyRedisBloomFilter {
    bit: u32,
    hashes: u32,
}

impl ScrapyRedisBloomFilter {
    /// Default of `BLOOMFILTER_BIT` in the package.
    pub const DEFAULT_BIT: u32 = 30;
    /// Default of `BLOOMFILTER_HASH_NUMBER` in the package.
    pub const DEFAULT_HASH_NUMBER: u32 = 6;

    /// Makes the layout for the package's settings `BLOOMFILTER_BIT` and `BLOOMFILTER_HASH_NUMBER`.
    ///
    /// # Errors
    /// If BIT is over 32, which no Redis string has room for. Also if there is no hash (every key
    /// would be seen), or more than 1000.
    pub fn new(bit: u32, hash_number: u32) -> Result<Self, SizeError> {
        if bit > u32::BITS {
            let allowed = "it is 0 to 32: a Redis string has at most 2^32 bits";
            return Err(SizeError::new(NAME, "BIT", bit, allowed));
        }
        if !(1..=MOST_HASHES).contains(&hash_number) {
            let allowed = format!("it is 1 to {MOST_HASHES}");
            return Err(SizeError::new(NAME, "the hash number", hash_number, allowed));
        }
        Ok(Self { bit, hashes: hash_number })
    }

    /// Returns m, the bits of the string.
    pub(crate) fn m(&self) -> u64 {
        1 << self.bit
    }

    /// Returns the mask of a hash's low bits, which are a position.
    fn mask(self) -> u32 {
        // The mask is below 2^32.
        #[allow(clippy::cast_possible_truncation)]
        let mask = (self.m() - 1) as u32;
        mask
    }

    fn push<C>(self, codes: &C, positions: &mut Vec<BitPosition>)
    where
        C: Iterator<Item = u32> + Clone,
    {
        let mask = self.mask();
        positions.extend((1..=self.hashes).map(|factor| {
            // Its 32 lowest bits are enough, because the position is in them.
            let hash = codes
                .clone()
                .fold(0_u32, |hash, code| hash.wrapping_mul(factor).wrapping_add(code));
            BitPosition { string: 0, bit: hash & mask }
        }));
    }
}

/// Returns the number of bits that the sums of characters fall on; 0 if that is nearly all bits.
fn crowded(bits: u64) -> u64 {
    const SUMS: u64 = 1 << 12;
    if bits > 2 * SUMS { SUMS } else { 0 }
}

impl BitStrings for ScrapyRedisBloomFilter {
    fn strings(&self) -> u32 {
        1
    }

    fn key(&self, base: &str, _string: u32) -> String {
        base.to_owned()
    }

    fn bits(&self, _string: u32) -> u64 {
        self.m()
    }

    fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Counts all hashes but the first, which is almost the same for all keys.
    fn spread_hashes(&self) -> f64 {
        f64::from(self.hashes.max(2) - 1)
    }

    /// The sum of 40 characters is 4080 at most.
    fn crowded_bits(&self, _string: u32) -> u64 {
        crowded(self.m())
    }

    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError> {
        if text.is_empty() {
            // The package sets a bit for an empty text, and never calls it seen.
            return Err(PlacementError::Empty);
        }
        if text.is_ascii() {
            self.push(&text.iter().map(|&byte| byte.into()), positions);
        } else {
            let text = std::str::from_utf8(text).map_err(|_| PlacementError::NotText)?;
            self.push(&text.chars().map(u32::from), positions);
        }
        Ok(())
    }

    /// Returns the sum over the possible sums s of P(s) q(s), times f^(k - 1), where of n keys
    ///
    /// - P(s) is the chance that 40 random hex digits sum up to s (mod m),
    /// - g = 1 - (1 - 1/m)^((k - 1) n) is the share of bits that all hashes but the first have set,
    /// - q(s) = 1 - (1 - g)(1 - P(s))^n is the chance that the bit s is set,
    /// - f = 1 - (1 - g)(1 - the bits that the first hash has set, divided by m) is the share of
    ///   all bits that are set.
    ///
    /// This assumes that the other hashes are even and independent. Some have a factor, the seed +
    /// 1, that is divisible by 4. These depend only on the last characters and are a little uneven,
    /// so the true rate is up to some percent higher.
    fn error_rate(&self, keys: u64) -> f64 {
        let (bits, keys) = (self.m() as f64, keys as f64);
        let others = f64::from(self.hashes - 1);
        let empty = 1.0 - fill(others * keys, bits);
        let (mut first_known, mut first_set) = (0.0, 0.0);
        for chance in sums(self.mask()) {
            let unset = (1.0 - chance).powf(keys);
            first_known += chance * (1.0 - empty * unset);
            first_set += 1.0 - unset;
        }
        first_known * (1.0 - empty * (1.0 - first_set / bits)).powf(others)
    }
}

/// Returns the chance of each sum that random hex digits can have, modulo the mask + 1.
fn sums(mask: u32) -> Vec<f64> {
    let digits = b"0123456789abcdef".map(usize::from);
    let mut chances = vec![1.0];
    for _ in 0..DIGITS {
        let mut next = vec![0.0; chances.len() + usize::from(b'f')];
        for (sum, chance) in chances.iter().enumerate() {
            for digit in digits {
                next[sum + digit] += chance / digits.len() as f64;
            }
        }
        chances = next;
    }
    let mask = mask as usize;
    let mut folded = vec![0.0; chances.len().min(mask.saturating_add(1))];
    for (sum, chance) in chances.iter().enumerate() {
        folded[sum & mask] += chance;
    }
    folded
}
