//! What the layouts of other projects have in common: their bits lie in Redis strings.

use std::fmt;

use crate::filter::redis_kind::Record;

/// The most bits that a Redis string holds: 512 MiB of them.
pub(in crate::filter) const LARGEST_STRING: u64 = 1 << 32;

/// A filter layout whose bits lie in Redis strings, numbered from 0, so that other programs can
/// share them.
pub trait BitStrings: fmt::Debug {
    /// How many strings there are. Some may never get a bit.
    fn strings(&self) -> u32;

    /// The numbers of the strings that get bits, in order, where keys are hex digits of digests.
    fn used_strings(&self) -> Vec<u32> {
        (0..self.strings()).collect()
    }

    /// The Redis key of a string of the filter that is named `base` in that project's settings.
    fn key(&self, base: &str, string: u32) -> String;

    /// The hash beside the strings in which the project keeps what the filter was made for.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// How many bits of a string the layout can reach, counted from its first.
    fn bits(&self, string: u32) -> u64;

    /// The length in bytes that a string grows to and never exceeds: a longer one is not this
    /// filter's.
    fn max_bytes(&self, string: u32) -> u64 {
        self.bits(string).div_ceil(8)
    }

    /// How many positions a key has: the number of hashes, k.
    fn hashes(&self) -> u32;

    /// How many of the hashes spread evenly over a string, so that its fill tells how many keys it
    /// has.
    fn spread_hashes(&self) -> f64 {
        self.hashes().into()
    }

    /// How many bits at the begin of a string are crowded with what hashes say that are not spread:
    /// they tell nothing of how many keys it has. A multiple of 8.
    fn crowded_bits(&self, _string: u32) -> u64 {
        0
    }

    /// Appends the positions of a text, one for each hash and in the order of the hashes; some may
    /// be the same. The text is what the other project would pass as a Python string, in UTF-8:
    /// normally the 40 lower-case hex digits of a fingerprint.
    ///
    /// # Errors
    /// The other project has no place for such a text either. Nothing is appended then.
    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError>;

    /// The share of unseen keys that are taken for seen once the filter holds so many `keys`, all
    /// of them hex digits of digests. It is what the layout does, not what was asked of it.
    fn error_rate(&self, keys: u64) -> f64;
}

/// A bit of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitPosition {
    /// The number of its string.
    pub string: u32,
    /// Its offset in the string as Redis counts, from the highest bit of the first byte: what
    /// `SETBIT` takes.
    pub bit: u32,
}

/// A text that a layout has no place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// There is nothing to hash.
    #[error("the fingerprint is empty")]
    Empty,
    /// It is no Python string.
    #[error("the fingerprint is not UTF-8; this layout hashes characters, so pass hex digits")]
    NotText,
    /// Its first characters do not say which string it belongs to.
    #[error("the fingerprint does not begin with {0} hex digits, which say where it belongs")]
    NotHex(u8),
}

/// A setting that a layout cannot have.
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

    /// Refuses an error rate that is none.
    pub(in crate::filter) fn check_error_rate(layout: &'static str, rate: f64) -> Result<(), Self> {
        if rate > 0.0 && rate < 1.0 {
            return Ok(());
        }
        Err(Self::new(layout, "the error rate", rate, "it lies between 0 and 1"))
    }
}

/// The share of `bits` that are set after `draws` of them, each as likely as any other.
pub(in crate::filter) fn fill(draws: f64, bits: f64) -> f64 {
    if draws <= 0.0 { 0.0 } else { -(draws * (-1.0 / bits).ln_1p()).exp_m1() }
}

/// The error rate where keys are spread unevenly over strings of as many `bits`: `shares` are those
/// of the keys, and a key that is asked for is in a string as likely as any other.
pub(in crate::filter) fn rate_of_shares(
    shares: impl Iterator<Item = f64>,
    keys: u64,
    hashes: u32,
    bits: f64,
) -> f64 {
    let hashes = f64::from(hashes);
    shares.map(|share| share * fill(hashes * share * keys as f64, bits).powf(hashes)).sum()
}

/// The numbers of those of `strings` strings that any of the `codes` leads to, in order: a code
/// belongs to the string that is the code modulo their number.
pub(in crate::filter) fn used(strings: u32, codes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut used: Vec<u32> = codes.map(|code| code % strings).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// The shares of `strings` strings, where keys are equally likely to have any of the `codes`, and
/// belong to the string that is the code modulo their number. Strings without a key are left out.
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
