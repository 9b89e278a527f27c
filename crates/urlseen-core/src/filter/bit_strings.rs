//! Interface of the layouts of other projects, whose bits are in Redis strings.

use std::fmt;

use super::redis_kind::Record;

/// Maximum number of bits of a Redis string: 512 MiB.
pub(super) const LARGEST_STRING: u64 = 1 << 32;

/// Filter layout whose bits are in Redis strings, so that other programs can share them. The
/// strings are numbered from 0.
pub(crate) trait BitStrings: fmt::Debug {
    /// Returns the number of strings. Some strings may never get a bit.
    fn strings(&self) -> u32 {
        1
    }

    /// Returns all codes that a key can have. A key with the code `code` has its bits in the string
    /// `code % strings`. All codes are equally likely if the keys are hex digits of digests. For
    /// example, if the first hex digit chooses the string, the result is the character codes of the
    /// sixteen hex digits.
    fn codes(&self) -> Vec<u32> {
        (0..self.strings()).collect()
    }

    /// Returns the Redis key of a string. `base` is the filter's name in the project's settings.
    fn key(&self, base: &str, _string: u32) -> String {
        base.to_owned()
    }

    /// Returns the Redis hash in which the project keeps the filter's parameters, if it has one.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// Returns the number of bits at the start of a string that the layout can set.
    fn bits(&self, string: u32) -> u64;

    /// Returns k, the number of hashes. A key has one position for each hash.
    fn hashes(&self) -> u32;

    /// Returns the number of hashes that are evenly spread over a string. The number of keys is
    /// estimated from these hashes.
    fn spread_hashes(&self) -> f64 {
        self.hashes().into()
    }

    /// Returns the number of crowded bits at the start of each string: uneven hashes set these bits
    /// sooner than the rest. The estimate of the number of keys leaves these bits out. The result
    /// is a multiple of 8.
    fn crowded_bits(&self) -> u64 {
        0
    }

    /// Appends the positions of a text, one for each hash and in the order of the hashes. Some
    /// positions may coincide. The text is the other project's Python string in UTF-8: normally the
    /// 40 lower-case hex digits of a fingerprint.
    ///
    /// # Errors
    /// The other project refuses the text, too. Then no position is appended.
    fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError>;

    /// Returns the share of unseen keys that a filter with `keys` keys reports as seen. All keys
    /// are hex digits of digests. This true rate may differ from the requested rate.
    ///
    /// With m bits in each string and k hashes, this share is the sum, over the strings, of
    ///
    /// ```text
    /// s (1 - (1 - 1/m)^(k keys s))^k
    /// ```
    ///
    /// Here s is the fraction of the codes that choose the string.
    fn error_rate(&self, keys: u64) -> f64 {
        let (hashes, bits) = (f64::from(self.hashes()), self.bits(0) as f64);
        let strings = leads_to(self);
        let shares =
            strings.chunk_by(PartialEq::eq).map(|it| it.len() as f64 / strings.len() as f64);
        shares.map(|share| share * fill(hashes * share * keys as f64, bits).powf(hashes)).sum()
    }
}

/// Returns the numbers of the strings that at least one code chooses, in order. The other strings
/// never get a bit.
pub(super) fn used_strings(layout: &(impl BitStrings + ?Sized)) -> Vec<u32> {
    let mut used = leads_to(layout);
    used.dedup();
    used
}

/// Returns one string number for each code, in order: the number of the string that the code
/// chooses.
fn leads_to(layout: &(impl BitStrings + ?Sized)) -> Vec<u32> {
    let mut strings: Vec<u32> =
        layout.codes().into_iter().map(|code| code % layout.strings()).collect();
    strings.sort_unstable();
    strings
}

/// Position of a bit of a filter in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitPosition {
    /// Index of the string that contains the bit.
    pub string: u32,
    /// Offset in the string as `SETBIT` takes it, from the highest bit of the first byte.
    pub bit: u32,
}

/// Reason why a layout cannot place a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The text has no character that could be hashed.
    #[error("the fingerprint is empty")]
    Empty,
    /// The text is not a Python string.
    #[error("the fingerprint is not UTF-8; this kind hashes characters, so pass hex digits")]
    NotText,
    /// The first characters are not hex digits, so they determine no string.
    #[error("the fingerprint does not begin with {0} hex digits, which choose its Redis key")]
    NotHex(u8),
}

/// Error of a setting that is impossible in a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the layout {layout} cannot have {setting} {found}: {allowed}")]
pub struct SizeError {
    layout: &'static str,
    setting: &'static str,
    found: String,
    allowed: String,
}

impl SizeError {
    pub(super) fn new(
        layout: &'static str,
        setting: &'static str,
        found: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self { layout, setting, found: found.to_string(), allowed: allowed.into() }
    }

    /// Refuses a capacity of 0, and an error rate that is not between 0 and 1.
    pub(super) fn check(layout: &'static str, capacity: u64, error_rate: f64) -> Result<(), Self> {
        if capacity == 0 {
            return Err(Self::new(layout, "the capacity", capacity, "it is 1 or more"));
        }
        if error_rate > 0.0 && error_rate < 1.0 {
            return Ok(());
        }
        Err(Self::new(layout, "the error rate", error_rate, "it lies between 0 and 1"))
    }

    /// Makes the error for a capacity that the layout cannot have at this error rate.
    pub(super) fn of_size(
        layout: &'static str,
        capacity: u64,
        error_rate: f64,
        allowed: impl Into<String>,
    ) -> Self {
        let found = format!("{capacity} at the error rate {error_rate:e}");
        Self::new(layout, "the capacity", found, allowed)
    }
}

/// Returns a mask in which the lowest `bits` bits are 1. `bits` is at most 32.
pub(super) fn low_bits(bits: u32) -> u32 {
    u32::MAX.checked_shr(u32::BITS - bits).unwrap_or(0)
}

/// Returns the share of `bits` bits that are set after `draws` draws, if all bits are equally
/// likely.
pub(super) fn fill(draws: f64, bits: f64) -> f64 {
    if draws <= 0.0 { 0.0 } else { -(draws * (-1.0 / bits).ln_1p()).exp_m1() }
}

/// Returns the error rate of a filter of `bits` bits with `keys` keys, if all bits are equally
/// likely.
pub(super) fn rate(keys: f64, hashes: u32, bits: f64) -> f64 {
    let hashes = f64::from(hashes);
    fill(hashes * keys, bits).powf(hashes)
}
