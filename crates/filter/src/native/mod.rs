//! Native layout: the leading byte of a key's hash chooses a shard. The key's bits are in a few
//! blocks of this shard.
//!
//! The seeded MurmurHash3 x64-128 of the fingerprint gives two words, h1 and h2. They start a
//! generator that is similar to Wang Yi's wyrand. The state of the generator starts at h1. The
//! increment is h2 | 1, so that the sequences of two keys differ in more than their start. The n-th
//! word, counted from 0, is
//!
//! ```text
//! s = h1 + (n + 1) (h2 | 1)                    mod 2^64
//! t = s (s ^ 0xe7037ed1a0b428db)               all 128 bits
//! word = t / 2^64 ^ t                          mod 2^64
//! ```
//!
//! The first words choose the blocks, one word for each part of the shard. The index of a block in
//! its part is the word times the number of blocks in a part, divided by 2^64. The later words
//! choose the bits, for one part after the other. Each word gives seven positions in the block. A
//! position is 9 bits of the word, and the first position has the lowest bits. Each part begins
//! with a new word. Two positions may coincide. To draw a new position in that case would save half
//! a percent of memory, but cost a branch for each bit.
//!
//! The shard is the top byte of h1. The generator mixes h1, so the positions show no dependence on
//! that byte.
//!
//! The best Bloom filter with the error rate p has 1.44 log2(1/p) bits for each key. Of 1, 2, 4
//! and 8 blocks, urlseen chooses the smallest number with which a filter needs at most 1.16
//! times as many: 1 for error rates down to 1e-4, 2 down to 1e-8, then 4.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

mod kernel;
pub(crate) mod kind;
#[cfg(test)]
mod rate_tests;
pub(crate) mod shards;

use urlseen_fingerprint::Fingerprint;

use crate::geometry::BLOCK_BITS;
use crate::{Geometry, KeyHash, Seed};

/// Name of the rule from key hashes to bit positions. Every stored filter records the name. Bits
/// that were set by another rule cannot be tested, so a reader compares the names first.
pub(crate) const POSITION_RULE: &str = "murmur3-x64-128/wyrand/block-64/bit-9";

/// Width of a position, in bits. A position is the number of a bit in its block.
const POSITION_BITS: u32 = BLOCK_BITS.ilog2();

/// Positions taken from one word.
const POSITIONS_PER_WORD: u8 = 7;

/// Native layout of one filter: converts fingerprints to bit positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native {
    /// Seed of the hash of fingerprints.
    pub seed: Seed,
    /// Division of the bits into shards and blocks.
    pub geometry: Geometry,
}

impl Native {
    /// Builds the layout for a seed and a geometry.
    pub fn new(seed: Seed, geometry: Geometry) -> Self {
        Self { seed, geometry }
    }

    /// Computes the key hash of a fingerprint. All other methods take this key hash.
    #[inline]
    pub fn key_hash(&self, fingerprint: &Fingerprint) -> KeyHash {
        KeyHash::of(self.seed, fingerprint)
    }

    /// Returns the bit positions of a key in its shard, in the order in which they are drawn. A
    /// position counts from the first bit of the shard's first block. A key has [`Geometry::k`]
    /// positions; some may coincide.
    pub(crate) fn positions(&self, key_hash: KeyHash) -> Vec<u64> {
        let mut positions = Vec::new();
        for part in 0..self.geometry.blocks.get() as usize {
            let first = self.block(key_hash, part) as u64 * u64::from(BLOCK_BITS);
            self.draw(key_hash, part).for_each_bit(|bit| positions.push(first + u64::from(bit)));
        }
        positions
    }

    /// Returns the index of the block that a key has in this part of its shard. The index counts
    /// from the first block of the shard.
    #[inline(always)]
    pub(crate) fn block(&self, key_hash: KeyHash, part: usize) -> usize {
        let in_part = self.geometry.blocks_per_part as usize;
        let word = Words::from(key_hash, part).next();
        let block = (u128::from(word) * in_part as u128) >> u64::BITS;
        // The number is below `in_part`.
        #[allow(clippy::cast_possible_truncation)]
        let block = block as usize;
        part * in_part + block
    }

    /// Returns the draw of a key in the block that the key has in this part.
    #[inline(always)]
    pub(crate) fn draw(&self, key_hash: KeyHash, part: usize) -> Draw {
        let bits = self.geometry.bits_per_block;
        let (full, rest) = (bits / POSITIONS_PER_WORD, bits % POSITIONS_PER_WORD);
        let first = self.geometry.blocks.get() as usize
            + part * usize::from(bits.div_ceil(POSITIONS_PER_WORD));
        Draw { words: Words::from(key_hash, first), full, rest }
    }
}

/// Generator of the words from which positions are drawn.
#[derive(Debug, Clone, Copy)]
struct Words {
    state: u64,
    step: u64,
}

impl Words {
    /// Returns the generator of a key, ready to produce its n-th word.
    #[inline(always)]
    fn from(key_hash: KeyHash, n: usize) -> Self {
        let step = key_hash.h2 | 1;
        Self { state: key_hash.h1.wrapping_add(step.wrapping_mul(n as u64)), step }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(self.step);
        let product = u128::from(self.state) * u128::from(self.state ^ 0xe703_7ed1_a0b4_28db);
        // Only the low half.
        #[allow(clippy::cast_possible_truncation)]
        let low = product as u64;
        (product >> u64::BITS) as u64 ^ low
    }
}

/// Draw of a key in one block: the words that determine its bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    words: Words,
    /// Number of words that give seven positions each.
    full: u8,
    /// Number of positions that one further word gives; 0 if there is no further word.
    rest: u8,
}

impl Draw {
    /// Calls `visit` with each drawn word, in order, and the number of positions taken from it. The
    /// first position is the lowest 9 bits of the word, the second one is the next 9 bits, and so
    /// on.
    #[inline(always)]
    pub(crate) fn for_each_word(mut self, mut visit: impl FnMut(u64, u8)) {
        for _ in 0..self.full {
            visit(self.words.next(), POSITIONS_PER_WORD);
        }
        if self.rest > 0 {
            visit(self.words.next(), self.rest);
        }
    }

    /// Calls `visit` with each drawn bit, 0 to 511, in order.
    #[inline(always)]
    pub(crate) fn for_each_bit(self, mut visit: impl FnMut(u32)) {
        self.for_each_word(|mut word, positions| {
            for _ in 0..positions {
                // The lowest nine bits.
                #[allow(clippy::cast_possible_truncation)]
                visit(word as u32 & (BLOCK_BITS - 1));
                word >>= POSITION_BITS;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, SHARD_RULE};

    fn native(bits_per_block: u8) -> Native {
        Native::new(Seed::new(42), Geometry::new(Blocks::Two, bits_per_block, 1000).unwrap())
    }

    /// Compares with numbers that were computed in Python, from mmh3 and the rule at the start of
    /// this file. Stored files depend on these numbers, so they may change only together with the
    /// names of the rules.
    #[test]
    fn shards_and_positions_are_those_of_existing_files() {
        assert_eq!(SHARD_RULE, "murmur3-x64-128-top-byte");
        assert_eq!(POSITION_RULE, "murmur3-x64-128/wyrand/block-64/bit-9");
        let native = native(8);
        for (fingerprint, shard, id, positions) in [
            (
                "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                0x73,
                0x73df_4a24_c435_5001_4303_5009_eaef_059e,
                [
                    303_289, 303_554, 303_546, 303_332, 303_451, 303_440, 303_600, 303_523,
                    579_924, 580_021, 580_088, 579_964, 579_772, 579_722, 579_592, 579_595,
                ],
            ),
            (
                "https://example.com/",
                0x6d,
                0x6dd7_c2b6_86fc_a99f_189a_2317_da36_81d1,
                [
                    128_593, 128_540, 128_831, 128_828, 128_605, 128_884, 128_806, 128_534,
                    672_494, 672_657, 672_507, 672_362, 672_347, 672_582, 672_413, 672_444,
                ],
            ),
        ] {
            let key_hash = native.key_hash(&Fingerprint::from_text(fingerprint.as_bytes()));
            assert_eq!(key_hash.shard().index(), shard);
            assert_eq!(key_hash.id(), id, "{:#x}", key_hash.id());
            assert_eq!(native.positions(key_hash), positions);
        }
    }

    #[test]
    fn chosen_digests_and_text_spread_over_the_shards() {
        let native = native(8);
        for digits in [0, 32, 40, 64] {
            let mut keys = [0u32; 256];
            for page in 0..25_600 {
                let text = match digits {
                    0 => format!("https://example.com/{page}"),
                    _ => format!("{page:0>digits$x}"),
                };
                let fingerprint = Fingerprint::from_text(text.as_bytes());
                keys[native.key_hash(&fingerprint).shard().index()] += 1;
            }
            // The mean is 100, the standard deviation 10.
            assert!(keys.iter().all(|&keys| (50..=150).contains(&keys)), "{digits}: {keys:?}");
        }
    }

    #[test]
    fn each_part_has_the_positions_of_one_block() {
        for bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK {
            let native = native(bits_per_block);
            for key in 0..100u8 {
                let key_hash = native.key_hash(&Fingerprint::Raw20([key; 20]));
                let positions = native.positions(key_hash);
                assert_eq!(positions.len(), 2 * usize::from(bits_per_block));
                for (part, group) in positions.chunks(usize::from(bits_per_block)).enumerate() {
                    let block = group[0] / 512;
                    assert!(group.iter().all(|position| position / 512 == block), "{positions:?}");
                    assert_eq!(block / 1000, part as u64);
                }
            }
        }
    }

    #[test]
    fn each_position_is_nine_bits_of_a_drawn_word() {
        let bit = |mut draw: Draw, n: u8| {
            let word = (0..=n / POSITIONS_PER_WORD).fold(0, |_, _| draw.words.next());
            word >> (9 * (n % POSITIONS_PER_WORD)) & 511
        };
        for bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK {
            let native = native(bits_per_block);
            let key_hash = native.key_hash(&Fingerprint::Text(b"key".as_slice().into()));
            let expected: Vec<u64> = (0..2)
                .flat_map(|part| {
                    let first = native.block(key_hash, part) as u64 * 512;
                    let draw = native.draw(key_hash, part);
                    (0..bits_per_block).map(move |n| first + bit(draw, n))
                })
                .collect();
            assert_eq!(native.positions(key_hash), expected);
        }
    }
}
