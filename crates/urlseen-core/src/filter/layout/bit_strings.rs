//! Interface of other projects' layouts, whose bits are in Redis strings.

use std::fmt;

use crate::filter::redis_kind::Record;

/// Maximum number of bits of a Redis string: 512 MiB.
pub(in crate::filter) const LARGEST_STRING: u64 = 1 << 32;

/// A filter layout whose bits are in Redis strings, which are numbered from 0, so that other
/// programs can share them.
pub trait BitStrings: fmt::Debug {
    /// Returns the number of strings. Some may never get a bit.
    fn strings(&self) -> u32;

    /// Returns the numbers of the strings that get bits, in order, if keys are hex digits of
    /// digests.
    fn used_strings(&self) -> Vec<u32> {
        (0..self.strings()).collect()
    }

    /// Returns the Redis key of a string. The project's settings name the filter `base`.
    fn key(&self, base: &str, string: u32) -> String;

    /// Returns the hash in which the project keeps the filter's parameters, if it has one.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// Returns the number of bits at the start of a string that the layout can reach.
    fn bits(&self, string: u32) -> u64;

    /// Returns the greatest length of a string in bytes. A longer string belongs to another filter.
    fn max_bytes(&self, string: u32) -> u64 {
        self.bits(string).div_ceil(8)
    }

    /// Returns the number of positions of a key: the number of hashes, k.
    fn hashes(&self) -> u32;

    /// Returns the number of hashes that spread evenly over a string. With it, the string's fill
    /// tells the number of keys.
    fn spread_hashes(&self) -> f64 {
        self.hashes().into()
    }

    /// Returns the number of bits at the start of a string that the uneven hashes crowd. They tell
    /// nothing about the number of keys. A multiple of 8.
    fn crowded_bits(&self, _string: u32) -> u64 {
        0
    }

    /// Appends the positions of a text, one for each hash and in the order of the hashes. Some may
    /// coincide. The text is the other project's Python string in UTF-8: normally the 40 lower-case
    /// hex digits of a fingerprint.
    ///
    /// # Errors
    /// If the other project has no place for the text either. Then no position is appended.
    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError>;

    /// Returns the true share of unseen keys that are taken for seen once the filter holds `keys`
    /// keys. All keys are hex digits of digests. The rate may differ from the requested one.
    fn error_rate(&self, keys: u64) -> f64;
}

/// A bit of a filter in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitPosition {
    /// Number of the bit's string.
    pub string: u32,
    /// Offset in the string as `SETBIT` takes it, from the highest bit of the first byte.
    pub bit: u32,
}

/// Reason for which a layout has no place for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The text has no character to hash.
    #[error("the fingerprint is empty")]
    Empty,
    /// The text is not a Python string.
    #[error("the fingerprint is not UTF-8; this layout hashes characters, so pass hex digits")]
    NotText,
    /// The first characters do not tell the string.
    #[error("the fingerprint does not begin with {0} hex digits, which say where it belongs")]
    NotHex(u8),
}

/// A setting that is impossible in a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the layout {layout} cannot have {setting} {found}: {allowed}")]
pub struct SizeError {
    layout: &'static str,
    setting: &'static str,
    found: String,
    allowed: String,
}

impl SizeError {
    pub(in crate::filter) fn new(
        layout: &'static str,
        setting: &'static str,
        found: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self { layout, setting, found: found.to_string(), allowed: allowed.into() }
    }

    /// Refuses an error rate that is not between 0 and 1.
    pub(in crate::filter) fn check_error_rate(layout: &'static str, rate: f64) -> Result<(), Self> {
        if rate > 0.0 && rate < 1.0 {
            return Ok(());
        }
        Err(Self::new(layout, "the error rate", rate, "it lies between 0 and 1"))
    }
}

/// Returns the share of `bits` that are set after `draws` draws, if all bits are equally likely.
pub(in crate::filter) fn fill(draws: f64, bits: f64) -> f64 {
    if draws <= 0.0 { 0.0 } else { -(draws * (-1.0 / bits).ln_1p()).exp_m1() }
}

/// Returns the error rate if keys are spread unevenly over strings of `bits` bits. `shares` are the
/// strings' shares of the keys. An unseen key falls into a string with the same share.
pub(in crate::filter) fn rate_of_shares(
    shares: impl Iterator<Item = f64>,
    keys: u64,
    hashes: u32,
    bits: f64,
) -> f64 {
    let hashes = f64::from(hashes);
    shares.map(|share| share * fill(hashes * share * keys as f64, bits).powf(hashes)).sum()
}

/// Returns the numbers of the strings that any of the `codes` leads to, in order. A code leads to
/// the string with the number `code % strings`.
pub(in crate::filter) fn used(strings: u32, codes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut used: Vec<u32> = codes.map(|code| code % strings).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// Returns the strings' shares of the keys if all `codes` are equally likely. A code leads to the
/// string with the number `code % strings`. Strings without a key are left out.
pub(in crate::filter) fn shares(
    strings: u32,
    codes: impl ExactSizeIterator<Item = u32>,
) -> impl Iterator<Item = f64> {
    let all = codes.len() as f64;
    let mut taken: Vec<u32> = codes.map(|code| code % strings).collect();
    taken.sort_unstable();
    let counts: Vec<usize> = taken.chunk_by(PartialEq::eq).map(<[u32]>::len).collect();
    counts.into_iter().map(move |count| count as f64 / all)
}
