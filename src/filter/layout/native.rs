//! The native layout: a shard by the leading byte, and in it a few lines of bits.
//!
//! The seeded MurmurHash3 x64-128 of the fingerprint gives two words, h1 and h2. They start a
//! [SplitMix64](https://doi.org/10.1145/2660193.2660195) generator with state h1 and increment
//! h2 | 1, whose n-th word (from 0) is
//!
//! ```text
//! z = h1 + (n + 1) (h2 | 1)                    mod 2^64
//! z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9       mod 2^64
//! z = (z ^ z >> 27) * 0x94d049bb133111eb       mod 2^64
//! z =  z ^ z >> 31
//! ```
//!
//! For each part in turn, one word times the lines of a part, divided by 2^64, is the line; the
//! following words give 9 bits a position, lowest first, seven to a word, as many words as the
//! geometry's bits per line need. Positions may fall together.
//!
//! The shard of a digest and its positions are independent, as the positions' hash is seeded. The
//! shard of plain text is the top byte of h1, which the generator's mixing hides from the positions.

use super::super::geometry::LINE_BITS;
use super::super::{Geometry, Seed, ShardId};
use crate::fingerprint::Fingerprint;
use crate::hash::murmur3_x64_128;

/// The name of the rule above. Bits kept under one rule mean nothing under another, so whatever
/// keeps a filter keeps this beside it and compares.
pub const POSITION_RULE: &str = "murmur3-x64-128/splitmix64/line-64/bit-9";

/// Bits that number a position in a line.
const POSITION_BITS: u32 = LINE_BITS.ilog2();

/// Positions taken from one word.
const POSITIONS_PER_WORD: u8 = (u64::BITS / POSITION_BITS) as u8;

/// The native layout of one filter: all that turns a fingerprint into bit positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native {
    seed: Seed,
    geometry: Geometry,
}

impl Native {
    /// The layout for a seed and a geometry.
    pub fn new(seed: Seed, geometry: Geometry) -> Self {
        Self { seed, geometry }
    }

    /// The seed of the hash.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// How the bits are divided.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Hashes a fingerprint, once for all that is done with it.
    #[inline]
    pub fn probe(&self, fingerprint: &Fingerprint) -> Probe {
        let (h1, h2) = murmur3_x64_128(fingerprint.as_bytes(), self.seed.get());
        Probe { h1, h2, shard: ShardId::of(fingerprint, h1) }
    }

    /// The key's bit positions within its shard, counted from its first line's first bit, in the
    /// order drawn; some may be the same. There are [`Geometry::k`].
    pub fn positions(&self, probe: Probe) -> impl Iterator<Item = u64> {
        let per_part = u64::from(self.geometry.lines_per_part());
        self.draws(probe).enumerate().flat_map(move |(part, draw)| {
            let line = part as u64 * per_part + draw.line as u64;
            (0..draw.bits).map(move |n| line * u64::from(LINE_BITS) + draw.bit(n))
        })
    }

    /// What the key draws in each part of its shard.
    #[inline]
    pub(in crate::filter) fn draws(&self, probe: Probe) -> impl Iterator<Item = Draw> {
        let bits = self.geometry.bits_per_line();
        let words = 1 + u64::from(bits.div_ceil(POSITIONS_PER_WORD));
        let lines = self.geometry.lines_per_part();
        (0..u64::from(self.geometry.lines().get())).map(move |part| {
            let first = part * words;
            let line = u128::from(probe.word(first)) * u128::from(lines) >> u64::BITS;
            // Below `lines`, a 32-bit number.
            #[allow(clippy::cast_possible_truncation)]
            Draw { probe, line: line as usize, next: first + 1, bits }
        })
    }
}

/// A key as the native layout sees it: its shard, and the hash that its positions come from.
/// It depends on the seed alone, so it outlives a change of geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Probe {
    h1: u64,
    h2: u64,
    shard: ShardId,
}

impl Probe {
    /// The shard that the key belongs to.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// The whole hash, h1 above h2: a name for the key that no two of a crawl share, for exact sets
    /// of few keys (a chance of 1e-15 that any two of 1e11 keys do).
    pub fn id(&self) -> u128 {
        u128::from(self.h1) << u64::BITS | u128::from(self.h2)
    }

    /// The n-th word of the generator that the hash starts.
    #[inline]
    fn word(self, n: u64) -> u64 {
        let z = self.h1.wrapping_add((self.h2 | 1).wrapping_mul(n.wrapping_add(1)));
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// What a key draws in one part: a line, and bits of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Draw {
    /// The line, counted from the part's first.
    pub(in crate::filter) line: usize,
    probe: Probe,
    next: u64,
    bits: u8,
}

impl Draw {
    /// The n-th bit drawn, 0 to 511.
    fn bit(self, n: u8) -> u64 {
        let word = self.probe.word(self.next + u64::from(n / POSITIONS_PER_WORD));
        word >> (POSITION_BITS * u32::from(n % POSITIONS_PER_WORD)) & u64::from(LINE_BITS - 1)
    }

    /// Calls `visit` with each bit drawn, in order: the loop of all tests and sets.
    #[inline]
    pub(in crate::filter) fn for_each_bit(self, mut visit: impl FnMut(u32)) {
        let (mut next, mut left) = (self.next, self.bits);
        while left > 0 {
            let mut word = self.probe.word(next);
            for _ in 0..left.min(POSITIONS_PER_WORD) {
                // Nine bits.
                #[allow(clippy::cast_possible_truncation)]
                visit(word as u32 & (LINE_BITS - 1));
                word >>= POSITION_BITS;
            }
            next += 1;
            left = left.saturating_sub(POSITIONS_PER_WORD);
        }
    }
}
