//! Layout of the Python package `scrapy-redis-bloomfilter-block-cluster`.
//!
//! ```text
//! m = 2^BIT                             bits of a block; BIT over 32 counts as 32
//! seeds: the first HASH_NUMBER seeds of BloomFilter_imooc
//! key    KEYB, B = the text's first two hex digits mod BLOCK_NUM; three digits if BLOCK_NUM > 256
//! bit    MurmurHash3 x86-32 (text, seed), unsigned, mod m
//! ```

use crate::SpecError;
use crate::key_hash::murmur3_x86_32;
use crate::kinds::kind::{BIT, HASH_NUMBER, IN_REDIS, Kind, Registered};
use crate::peers::bit_strings::{BitPosition, BitStrings, Place, PlacementError};
use crate::peers::imooc::SEEDS;

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis-bloomfilter-block-cluster",
    short: NAME,
    keys: &[BIT, HASH_NUMBER, BLOCK_NUM],
    usual: &[(BIT, "32"), (HASH_NUMBER, "15"), (BLOCK_NUM, "1")],
    read: |values| values.by_numbers(KIND, |[bit, hashes, blocks]| layout(bit, hashes, blocks)),
    ..IN_REDIS
});

const BLOCK_NUM: &str = "filter.block_num";

const NAME: &str = "block-cluster";

/// Largest BIT with an effect: a Redis string has at most 2^32 bits.
const LARGEST_BIT: u32 = 32;

/// Number of blocks that two digits choose from.
const TWO_DIGITS: u32 = 256;

/// Computes the layout for the package's settings `BLOOMFILTER_BIT`, `BLOOMFILTER_HASH_NUMBER` and
/// `BLOOMFILTER_BLOCK_NUM`.
///
/// # Errors
/// The number of hashes or of blocks is 0. Without a hash, every key would be seen.
pub(crate) fn layout(bit: u32, hash_number: u32, block_num: u32) -> Result<BitStrings, SpecError> {
    if hash_number == 0 {
        return Err(SpecError::of_setting(NAME, "the hash number", hash_number, "it is 1 or more"));
    }
    if block_num == 0 {
        return Err(SpecError::of_setting(NAME, "the block number", block_num, "it is 1 or more"));
    }
    // Each hash has one of 100 seeds.
    #[allow(clippy::cast_possible_truncation)]
    let hashes = hash_number.min(SEEDS.len() as u32);
    let longest = 1 << bit.min(LARGEST_BIT);
    Ok(BitStrings {
        strings: block_num,
        // All numbers that the leading hex digits can form.
        codes: |layout| (0..1 << (4 * digits(layout))).collect(),
        separator: Some(""),
        longest,
        ..BitStrings::new(u64::from(block_num) * longest, hashes, PLACE)
    })
}

/// Returns the number of leading hex digits that choose the block.
fn digits(layout: &BitStrings) -> u8 {
    if layout.strings > TWO_DIGITS { 3 } else { 2 }
}

const PLACE: Place = |layout, text, positions| {
    let string = leading_number(text, digits(layout))? % layout.strings;
    let mask = layout.mask();
    positions.extend(SEEDS[..layout.hashes as usize].iter().map(|&seed| {
        let bit = murmur3_x86_32(text, seed) & mask;
        BitPosition { string, bit }
    }));
    Ok(())
};

/// Reads the first `digits` characters of a text as one hexadecimal number. A shorter text is read
/// whole.
fn leading_number(text: &[u8], digits: u8) -> Result<u32, PlacementError> {
    if text.is_empty() {
        return Err(PlacementError::Empty);
    }
    text.iter().take(digits.into()).try_fold(0, |number, &digit| {
        let value = char::from(digit).to_digit(16).ok_or(PlacementError::NotHex(digits))?;
        Ok(number << 4 | value)
    })
}
