//! Layout of the Python package `scrapy-redis-bloomfilter-block-cluster`.
//!
//! ```text
//! m = 2^BIT                             bits of a block; BIT over 32 counts as 32
//! seeds: the first HASH_NUMBER seeds of BloomFilter_imooc
//! key    KEYB, B = the text's first two hex digits mod BLOCK_NUM; three digits if BLOCK_NUM > 256
//! bit    MurmurHash3 x86-32 (text, seed), unsigned, mod m
//! ```

use super::imooc::SEEDS;
use super::{BIT, HASH_NUMBER, IN_REDIS, Kind, Registered};
use crate::filter::bit_strings::{BitPosition, BitStrings, PlacementError, SizeError, low_bits};
use crate::filter::hash::murmur3_x86_32;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis-bloomfilter-block-cluster",
    short: NAME,
    keys: &[BIT, HASH_NUMBER, BLOCK_NUM],
    usual: &[(BIT, "32"), (HASH_NUMBER, "15"), (BLOCK_NUM, "1")],
    read: |values| {
        values.by_numbers(|[bit, hash_number, block_num]| {
            Ok(BlockCluster::new(bit, hash_number, block_num)?)
        })
    },
    ..IN_REDIS
});

const BLOCK_NUM: &str = "filter.block_num";

const NAME: &str = "block-cluster";

/// Largest BIT with an effect: a Redis string has at most 2^32 bits.
const LARGEST_BIT: u32 = 32;

/// Number of blocks that two digits choose from.
const TWO_DIGITS: u32 = 256;

/// Layout of a filter of `scrapy-redis-bloomfilter-block-cluster`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockCluster {
    bit: u32,
    hashes: u32,
    blocks: u32,
}

impl BlockCluster {
    /// Computes the layout for the package's settings `BLOOMFILTER_BIT`, `BLOOMFILTER_HASH_NUMBER`
    /// and `BLOOMFILTER_BLOCK_NUM`.
    ///
    /// # Errors
    /// The number of hashes or of blocks is 0. Without a hash, every key would be seen.
    pub(crate) fn new(bit: u32, hash_number: u32, block_num: u32) -> Result<Self, SizeError> {
        if hash_number == 0 {
            return Err(SizeError::new(NAME, "the hash number", hash_number, "it is 1 or more"));
        }
        if block_num == 0 {
            return Err(SizeError::new(NAME, "the block number", block_num, "it is 1 or more"));
        }
        // Each hash has one of 100 seeds.
        #[allow(clippy::cast_possible_truncation)]
        let hashes = hash_number.min(SEEDS.len() as u32);
        Ok(Self { bit: bit.min(LARGEST_BIT), hashes, blocks: block_num })
    }

    /// Returns m, the number of bits of a block.
    pub(crate) fn m(&self) -> u64 {
        1 << self.bit
    }

    /// Returns the number of leading hex digits that choose the block.
    fn digits(&self) -> u8 {
        if self.blocks > TWO_DIGITS { 3 } else { 2 }
    }
}

impl BitStrings for BlockCluster {
    fn strings(&self) -> u32 {
        self.blocks
    }

    /// Returns all numbers that the leading hex digits can form.
    fn codes(&self) -> Vec<u32> {
        (0..1 << (4 * self.digits())).collect()
    }

    fn key(&self, base: &str, string: u32) -> String {
        format!("{base}{string}")
    }

    fn bits(&self, _string: u32) -> u64 {
        self.m()
    }

    fn hashes(&self) -> u32 {
        self.hashes
    }

    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError> {
        let string = leading_number(text, self.digits())? % self.blocks;
        let mask = low_bits(self.bit);
        positions.extend(SEEDS[..self.hashes as usize].iter().map(|&seed| {
            let bit = murmur3_x86_32(text, seed) & mask;
            BitPosition { string, bit }
        }));
        Ok(())
    }
}

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
