//! Distribution of the bits that keys choose, and an estimate of the number of keys from the bits
//! that are 1.
//!
//! A shard, or a string, has `parts` parts, each with `blocks` blocks of `block_bits` bits. A key
//! chooses a block in each part, and draws `draws` bits in that block, with replacement. A Bloom
//! filter without blocks counts as one block. With w bits in a block, B blocks and g draws, the
//! chance that a key does not set a certain bit is
//!
//! ```text
//! f1 = 1 - (1 - (1 - 1/w)^g) / B
//! ```
//!
//! If two bits share a block, the chance that a key sets neither is f2 = 1 - (1 - (1 - 2/w)^g) / B.
//! Otherwise, this chance is 1 - 2 (1 - f1). After n keys, a bit is 0 with the chance f1^n. So of m
//! bits, m f1^n are 0 on average. The estimate is the n at which this mean equals the counted
//! number of 0 bits. The formula of Swamidass and Baldi, n = -(m/k) ln(1 - X/m), uses e^(-k/m) in
//! place of f1. Without blocks, that formula is just as good. With blocks, its estimate is too low
//! by a share of (g - 1) / 2w, nearly one percent.
//!
//! The variance of the estimate follows from the same chances. The variance of the count of bits is
//! a sum over all pairs of bits. By the delta method, the variance of the estimate of n keys is
//! this sum divided by the square of the slope of the count:
//!
//! ```text
//! g(n) = (f1^-n - 1 + (w - 1) ((f2/f1^2)^n - 1) + (m - w) (((2 f1 - 1)/f1^2)^n - 1)) / m ln^2 f1
//! ```
//!
//! In the same way, the covariance of the estimates of two sets is g of the number of common keys.
//! Because g increases, no estimate of a set has a larger variance than that of a set with more
//! keys. With A, B and their union, the estimate |A| + |B| - |A or B| has the variance
//! g(|A or B|) + 2 g(|A and B|) - g(|A|) - g(|B|), which is at most g(|A or B|).

use super::number::whole;
use super::{BLOCK_BITS, Geometry};

/// Distribution of the bits that keys choose in a part of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cells {
    parts: f64,
    block_bits: f64,
    blocks: f64,
    draws: f64,
    crowded: u64,
}

/// Bits of a part of a filter.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    /// Distribution of the bits that the keys choose.
    pub cells: Cells,
    /// Bits of the part, eight in each byte.
    pub bytes: &'a [u8],
}

impl Cells {
    /// Returns the distribution of the chosen bits in a shard of the native kind.
    pub fn shard(geometry: Geometry) -> Self {
        Self {
            parts: geometry.blocks().get().into(),
            block_bits: BLOCK_BITS.into(),
            blocks: geometry.blocks_per_part().into(),
            draws: geometry.bits_per_block().into(),
            crowded: 0,
        }
    }

    /// Returns the distribution of the chosen bits in a string without blocks, in which a key draws
    /// `draws` bits.
    pub fn string(bits: u64, draws: f64) -> Self {
        Self { parts: 1.0, block_bits: bits as f64, blocks: 1.0, draws, crowded: 0 }
    }

    /// Returns the distribution of the chosen bits in a string. The first `crowded` bits are not
    /// used to estimate the number of keys. `crowded` is a multiple of 8.
    pub fn crowded_string(bits: u64, crowded: u64, draws: f64) -> Self {
        let counted = bits - crowded;
        Self { crowded, ..Self::string(counted, draws * counted as f64 / bits as f64) }
    }

    /// Returns the number of bytes at the start that are not used to estimate the number of keys.
    pub fn crowded_bytes(&self) -> u64 {
        self.crowded / 8
    }

    /// Returns the number of bits that are used to estimate the number of keys.
    pub fn bits(&self) -> f64 {
        self.parts * self.part_bits()
    }

    /// Returns the number of bits that a key sets.
    pub fn hashes(&self) -> u32 {
        u32::try_from(whole(self.parts * self.draws)).unwrap_or(u32::MAX)
    }

    fn part_bits(&self) -> f64 {
        self.blocks * self.block_bits
    }

    /// Returns ln f1 of the formulas above.
    fn ln_left(&self) -> f64 {
        let in_block = self.draws * (-1.0 / self.block_bits).ln_1p();
        if self.is_plain() { in_block } else { (in_block.exp_m1() / self.blocks).ln_1p() }
    }

    /// Returns true if a part has only one block.
    fn is_plain(&self) -> bool {
        self.blocks < 1.5
    }

    /// Estimates the number of keys of a part in which `ones` bits are 1.
    pub fn keys(&self, ones: u64) -> f64 {
        let zeros = (self.bits() - ones as f64).max(0.5);
        let keys = (zeros / self.bits()).ln() / self.ln_left();
        // Corrects the bias: the logarithm is concave, so the mean of the logarithms is below the
        // logarithm of the mean.
        (keys + self.variance(keys) * self.ln_left() / 2.0).max(0.0)
    }

    /// Returns g, the variance of the estimate of this number of keys.
    pub fn variance(&self, keys: f64) -> f64 {
        let (w, left) = (self.block_bits, self.ln_left());
        let (same_block, other_blocks);
        if self.is_plain() {
            same_block = self.draws * (-1.0 / ((w - 1.0) * (w - 1.0))).ln_1p();
            other_blocks = 0.0;
        } else {
            let hit = -left.exp_m1();
            let both = -(self.draws * (-2.0 / w).ln_1p()).exp_m1() / self.blocks;
            let squared = (1.0 - hit) * (1.0 - hit);
            same_block = ((2.0 * hit - both - hit * hit) / squared).ln_1p();
            other_blocks = (-hit * hit / squared).ln_1p();
        }
        let sum = (-keys * left).exp_m1()
            + (w - 1.0) * (keys * same_block).exp_m1()
            + (self.part_bits() - w) * (keys * other_blocks).exp_m1();
        (sum / (self.bits() * left * left)).max(0.0)
    }

    /// Returns true if too few bits are 0 to estimate the number of keys.
    pub fn is_full(&self, ones: u64) -> bool {
        self.bits() - (ones as f64) < 16.0
    }
}
