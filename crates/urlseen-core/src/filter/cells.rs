//! Distribution of the bits that keys choose, and the number of keys by the bits that are 1.
//!
//! A part of a filter has `parts` times `blocks` blocks of `block_bits` bits. A key chooses a block
//! in each of the parts, and draws `draws` bits in it, with replacement. A Bloom filter without
//! blocks is one block. With w bits a block, B blocks and g draws, a key does not set a bit with
//! the chance
//!
//! ```text
//! f1 = 1 - (1 - (1 - 1/w)^g) / B
//! ```
//!
//! and a pair of bits with f2 = 1 - (1 - (1 - 2/w)^g) / B if they share a block, otherwise with
//! 1 - 2 (1 - f1). So of m bits, m f1^n are 0 on average after n keys. The estimate is the n for
//! which this is the counted number. The formula of Swamidass and Baldi, n = -(m/k) ln(1 - X/m),
//! takes e^(-k/m) for f1. That is as good if there are no blocks. With blocks it is too low by
//! (g - 1) / 2w, nearly one in a hundred.
//!
//! The variances and the covariance of the estimates of two sets follow from the same chances. The
//! sums over all pairs of bits, by the delta method divided by the slopes, leave
//!
//! ```text
//! cov(n_S, n_T) = g(|S and T|), where
//! g(c) = (f1^-c - 1 + (w - 1) ((f2/f1^2)^c - 1) + (m - w) (((2 f1 - 1)/f1^2)^c - 1)) / m ln^2 f1
//! ```

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
    /// Distribution of the bits that keys choose.
    pub cells: Cells,
    /// The part's bits, eight a byte.
    pub bytes: &'a [u8],
}

impl Cells {
    /// Returns the cells of a shard of the native kind.
    pub fn shard(geometry: Geometry) -> Self {
        Self {
            parts: geometry.blocks().get().into(),
            block_bits: BLOCK_BITS.into(),
            blocks: geometry.blocks_per_part().into(),
            draws: geometry.bits_per_block().into(),
            crowded: 0,
        }
    }

    /// Returns the cells of bits without blocks, of which a key draws this number.
    pub fn string(bits: u64, draws: f64) -> Self {
        Self { parts: 1.0, block_bits: bits as f64, blocks: 1.0, draws, crowded: 0 }
    }

    /// Returns the cells of a string whose first bits, a multiple of 8, tell nothing of its keys.
    pub fn crowded_string(bits: u64, crowded: u64, draws: f64) -> Self {
        let counted = bits - crowded;
        Self { crowded, ..Self::string(counted, draws * counted as f64 / bits as f64) }
    }

    /// Number of bytes at the start that tell nothing of the keys.
    pub fn crowded_bytes(&self) -> u64 {
        self.crowded / 8
    }

    /// Number of bits that tell of the keys.
    pub fn bits(&self) -> f64 {
        self.parts * self.part_bits()
    }

    fn part_bits(&self) -> f64 {
        self.blocks * self.block_bits
    }

    /// Returns ln f1 of the formulas above.
    fn ln_left(&self) -> f64 {
        let in_block = self.draws * (-1.0 / self.block_bits).ln_1p();
        if self.is_plain() { in_block } else { (in_block.exp_m1() / self.blocks).ln_1p() }
    }

    /// Returns true if there are no blocks to choose from.
    fn is_plain(&self) -> bool {
        self.blocks < 1.5
    }

    /// Estimates the number of keys of a part in which `ones` bits are 1.
    pub fn keys(&self, ones: u64) -> f64 {
        let zeros = (self.bits() - ones as f64).max(0.5);
        let keys = (zeros / self.bits()).ln() / self.ln_left();
        // The logarithm is concave, so the mean of the logarithms is below the logarithm of the
        // mean.
        (keys + self.covariance(keys) * self.ln_left() / 2.0).max(0.0)
    }

    /// Covariance of the estimates of two sets that have `common` keys in common: g. It is the
    /// variance for one set.
    pub fn covariance(&self, common: f64) -> f64 {
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
        let sum = (-common * left).exp_m1()
            + (w - 1.0) * (common * same_block).exp_m1()
            + (self.part_bits() - w) * (common * other_blocks).exp_m1();
        (sum / (self.bits() * left * left)).max(0.0)
    }

    /// Returns true if so few bits are 0 that nothing is known of the keys.
    pub fn is_full(&self, ones: u64) -> bool {
        self.bits() - (ones as f64) < 16.0
    }
}
