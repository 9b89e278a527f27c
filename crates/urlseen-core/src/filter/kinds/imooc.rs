//! The layout of `BloomFilter_imooc`, a Python class that is copied from project to project.
//!
//! ```text
//! m = ceil(n log2(e) log2(1/p))         bits, for n keys at error rate p
//! k = ceil(log1p(2) m / n)              hashes: ln 3, although ln 2 would be best
//! blocks = ceil(ceil(m / 8 / 2^20) / 512)
//! key    KEY_B, B = code of the text's first character mod blocks
//! bit    h if h >= 0, else 2^31 - 1 - h, where h = MurmurHash3 x86-32 (text, seed), signed
//! ```
//!
//! `m` only determines the number of blocks. The bits of a block are spread over all 2^32 of a
//! string, so each block grows to 512 MiB at any capacity. A fingerprint's first character is one
//! of sixteen. So blocks fill unevenly, and of more than sixteen blocks, most stay empty. There are
//! 100 seeds, so at most 100 hashes are used.

use std::sync::Arc;

use super::sized::{BySize, Made, SIZE};
use super::{Kind, Registered};
use crate::filter::choice::FilterPlace;
use crate::filter::hash::murmur3_x86_32;
use crate::filter::layout::bit_strings::{LARGEST_STRING, rate_of_shares, shares, used};
use crate::filter::layout::{BitPosition, BitStrings, PlacementError, SizeError};
use crate::filter::redis_kind::InStrings;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "imooc",
    short: "imooc",
    summary: "that of BloomFilter_imooc",
    keys: SIZE,
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |values| Ok(BySize::read(values, KIND, make)?.into()),
});

fn make(capacity: u64, error_rate: f64) -> Made {
    Ok(Arc::new(InStrings(Imooc::new(capacity, error_rate)?)))
}

const NAME: &str = "imooc";

/// The seeds of the hashes, in order.
pub(crate) const SEEDS: [u32; 100] = [
    543, 460, 171, 876, 796, 607, 650, 81, 837, 545, 591, 946, 846, 521, 913, 636, 878, 735, 414,
    372, 344, 324, 223, 180, 327, 891, 798, 933, 493, 293, 836, 10, 6, 544, 924, 849, 438, 41, 862,
    648, 338, 465, 562, 693, 979, 52, 763, 103, 387, 374, 349, 94, 384, 680, 574, 480, 307, 580,
    71, 535, 300, 53, 481, 519, 644, 219, 686, 236, 424, 326, 244, 212, 909, 202, 951, 56, 812,
    901, 926, 250, 507, 739, 371, 63, 584, 154, 7, 284, 617, 332, 472, 140, 605, 262, 355, 526,
    647, 923, 199, 518,
];

/// The layout of `BloomFilter_imooc`.
#[derive(Debug, Clone, PartialEq)]
pub struct Imooc {
    m: u64,
    k: u64,
    blocks: u32,
}

impl Imooc {
    /// Makes the layout for a capacity in keys and an error rate, like the class.
    ///
    /// # Errors
    /// If the capacity is 0, the error rate is not between 0 and 1, or there are more than 2^32 - 1
    /// blocks.
    pub fn new(capacity: u64, error_rate: f64) -> Result<Self, SizeError> {
        if capacity == 0 {
            return Err(SizeError::new(NAME, "the capacity", capacity, "it is 1 or more"));
        }
        SizeError::check_error_rate(NAME, error_rate)?;
        let keys = capacity as f64;
        let bits = (keys * std::f64::consts::LOG2_E * (1.0 / error_rate).log2()).ceil();
        let hashes = (2.0_f64.ln_1p() * bits / keys).ceil();
        let blocks = ((bits / 8.0 / 1024.0 / 1024.0).ceil() / 512.0).ceil();
        // Otherwise a rate so close to 0 that its inverse is infinite, or so close to 1 that no bit
        // is left.
        if !(bits >= 1.0 && blocks <= f64::from(u32::MAX)) {
            let found = format!("{capacity} at the error rate {error_rate:e}");
            let allowed = "that takes from 1 bit to 2^32 - 1 strings of 512 MiB";
            return Err(SizeError::new(NAME, "the capacity", found, allowed));
        }
        // Whole numbers, at least 1; at most 2^64, 1700 and 2^32 - 1.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self { m: bits as u64, k: hashes as u64, blocks: blocks as u32 })
    }

    /// Returns m, the bits of the formula. Only the number of blocks follows from them.
    pub fn m(&self) -> u64 {
        self.m
    }

    /// Returns k, the hashes of the formula. Below an error rate of about 1e-19 there are not as
    /// many seeds.
    #[cfg(test)]
    pub(crate) fn k(&self) -> u64 {
        self.k
    }

    fn seeds(&self) -> &'static [u32] {
        let used = usize::try_from(self.k).unwrap_or(usize::MAX).min(SEEDS.len());
        &SEEDS[..used]
    }
}

impl BitStrings for Imooc {
    fn strings(&self) -> u32 {
        self.blocks
    }

    fn used_strings(&self) -> Vec<u32> {
        used(self.blocks, codes())
    }

    fn key(&self, base: &str, string: u32) -> String {
        format!("{base}_{string}")
    }

    fn bits(&self, _string: u32) -> u64 {
        LARGEST_STRING
    }

    fn hashes(&self) -> u32 {
        // There are at most 100 seeds.
        #[allow(clippy::cast_possible_truncation)]
        let used = self.seeds().len() as u32;
        used
    }

    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError> {
        let string = first_character(text)? % self.blocks;
        positions.extend(self.seeds().iter().map(|&seed| {
            let hash = murmur3_x86_32(text, seed);
            // If the signed hash is negative, 2^31 - 1 - h counts up from 2^31 as it goes down from
            // -1: the lower 31 bits are inverted.
            let bit = if hash >> 31 == 0 { hash } else { hash ^ (u32::MAX >> 1) };
            BitPosition { string, bit }
        }));
        Ok(())
    }

    /// Returns the sum over the blocks of share (1 - (1 - 2^-32)^(k n share))^k. A block's share is
    /// the share of the sixteen hex digits whose codes lead to it.
    fn error_rate(&self, keys: u64) -> f64 {
        let shares = shares(self.blocks, codes());
        rate_of_shares(shares, keys, self.hashes(), LARGEST_STRING as f64)
    }
}

/// Iterates over the codes of the sixteen hex digits, one of which begins a fingerprint.
fn codes() -> impl ExactSizeIterator<Item = u32> {
    b"0123456789abcdef".iter().map(|&digit| digit.into())
}

/// Returns the code point that a text begins with.
fn first_character(text: &[u8]) -> Result<u32, PlacementError> {
    let first = *text.first().ok_or(PlacementError::Empty)?;
    if first.is_ascii() {
        return Ok(first.into());
    }
    let text = std::str::from_utf8(text).map_err(|_| PlacementError::NotText)?;
    text.chars().next().map(u32::from).ok_or(PlacementError::Empty)
}
