//! Layout of the Python package `scrapy-redis-bloomfilter`.
//!
//! ```text
//! m = 2^BIT                             bits of the one string
//! seeds: 0 to HASH_NUMBER - 1
//! bit    for each character h = h (seed + 1) + its code; then h mod m
//! key    KEY
//! ```
//!
//! With seed 0 the hash is the plain sum of the characters: a number around 2800 for any
//! fingerprint. After some thousand keys, all bits around that number are set. Then this hash no
//! longer tells keys apart.

use crate::SpecError;
use crate::kinds::kind::{BIT, HASH_NUMBER, IN_REDIS, Kind, Registered};
use crate::peers::bit_strings::{BitPosition, BitStrings, Place, PlacementError, fill};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: NAME,
    keys: &[BIT, HASH_NUMBER],
    usual: &[(BIT, "30"), (HASH_NUMBER, "6")],
    read: |values| values.by_numbers(KIND, |[bit, hash_number]| layout(bit, hash_number)),
    ..IN_REDIS
});

const NAME: &str = "scrapy-redis-bloomfilter";

/// Maximum number of hashes. The best error rate needs far fewer hashes, and each hash makes a test
/// slower.
const MOST_HASHES: u32 = 1000;

/// Number of characters of a fingerprint.
const DIGITS: usize = 40;

/// Computes the layout for the package's settings `BLOOMFILTER_BIT` and `BLOOMFILTER_HASH_NUMBER`.
///
/// # Errors
/// BIT is over 32: a Redis string has at most 2^32 bits. The number of hashes is over 1000, or it
/// is 0. Without a hash, every key would be seen.
pub(crate) fn layout(bit: u32, hash_number: u32) -> Result<BitStrings, SpecError> {
    if bit > u32::BITS {
        let allowed = "it is 0 to 32: a Redis string has at most 2^32 bits";
        return Err(SpecError::of_setting(NAME, "BIT", bit, allowed));
    }
    if !(1..=MOST_HASHES).contains(&hash_number) {
        let allowed = format!("it is 1 to {MOST_HASHES}");
        return Err(SpecError::of_setting(NAME, "the hash number", hash_number, allowed));
    }
    Ok(BitStrings {
        // All hashes except the first one, which is almost the same for all keys.
        spread_hashes: hash_number.max(2) - 1,
        // Length of the start of the string that sums of 40 characters fill. The largest sum is
        // 4080. 0 if a sum can choose at least half of all bits.
        crowded_bits: if bit > 13 { 1 << 12 } else { 0 },
        rate: error_rate,
        ..BitStrings::new(1 << bit, hash_number, PLACE)
    })
}

const PLACE: Place = |layout, text, positions| {
    if text.is_empty() {
        // The package sets a bit for an empty text, but never reports an empty text as seen.
        return Err(PlacementError::Empty);
    }
    if text.is_ascii() {
        push(layout, &text.iter().map(|&byte| byte.into()), positions);
    } else {
        let text = std::str::from_utf8(text).map_err(|_| PlacementError::NotText)?;
        push(layout, &text.chars().map(u32::from), positions);
    }
    Ok(())
};

fn push<C>(layout: &BitStrings, codes: &C, positions: &mut Vec<BitPosition>)
where
    C: Iterator<Item = u32> + Clone,
{
    let mask = layout.mask();
    positions.extend((1..=layout.hashes).map(|factor| {
        // The 32 lowest bits of the hash are enough, because they contain the position.
        let hash =
            codes.clone().fold(0_u32, |hash, code| hash.wrapping_mul(factor).wrapping_add(code));
        BitPosition { string: 0, bit: hash & mask }
    }));
}

/// For n keys, returns f^(k - 1) times the sum of P(s) q(s) over all possible sums s, where
///
/// - P(s) is the chance that 40 random hex digits sum up to s (mod m),
/// - g = 1 - (1 - 1/m)^((k - 1) n) is the share of bits that all hashes but the first have set,
/// - q(s) = 1 - (1 - g)(1 - P(s))^n is the chance that the bit s is set,
/// - f = 1 - (1 - g)(1 - the bits that the first hash has set, divided by m) is the share of
///   all bits that are set.
///
/// The formula assumes that all hashes but the first are evenly spread and independent. If the
/// factor of a hash, seed + 1, is divisible by 4, the hash depends only on the last characters
/// and is a little uneven. So the true rate is up to some percent higher.
fn error_rate(layout: &BitStrings, keys: u64) -> f64 {
    let (bits, keys) = (layout.m as f64, keys as f64);
    let others = f64::from(layout.hashes - 1);
    let empty = 1.0 - fill(others * keys, bits);
    let (mut first_known, mut first_set) = (0.0, 0.0);
    for chance in sums(layout.mask()) {
        let unset = (1.0 - chance).powf(keys);
        first_known += chance * (1.0 - empty * unset);
        first_set += 1.0 - unset;
    }
    first_known * (1.0 - empty * (1.0 - first_set / bits)).powf(others)
}

/// Returns the chance of each sum of 40 random hex digits, modulo the mask + 1.
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
