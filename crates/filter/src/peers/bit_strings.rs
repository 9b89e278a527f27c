//! Layouts of other projects, whose bits are in Redis strings.

use crate::redis_kind::Record;

/// Maximum number of bits of a Redis string: 512 MiB.
pub(crate) const LARGEST_STRING: u64 = 1 << 32;

/// Function that appends the positions of a text, one for each hash and in the order of the hashes.
/// Some positions may coincide. The text is the other project's Python string in UTF-8: normally
/// the 40 lower-case hex digits of a fingerprint. If the other project refuses the text, the
/// function does so, too, and appends no position.
pub(crate) type Place =
    fn(&BitStrings, text: &[u8], positions: &mut Vec<BitPosition>) -> Result<(), PlacementError>;

/// Filter layout whose bits are in Redis strings, so that other programs can share them. The
/// strings are numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct BitStrings {
    /// Number of strings. Some strings may never get a bit.
    pub(crate) strings: u32,
    /// Returns all codes that a key can have. A key with the code `code` has its bits in the string
    /// `code % strings`. All codes are equally likely if the keys are hex digits of digests. For
    /// example, if the first hex digit chooses the string, the result is the character codes of
    /// the sixteen hex digits.
    pub(crate) codes: fn(&Self) -> Vec<u32>,
    /// Text between the filter's name in the project's settings and the number of a string, in the
    /// Redis key of the string. `None` if the key is the name of the filter.
    pub(crate) separator: Option<&'static str>,
    /// Redis hash in which the project keeps the filter's parameters, if it has one. Its key is
    /// still missing here.
    pub(crate) record: Option<Record>,
    /// Number of bits of all strings together.
    pub(crate) m: u64,
    /// Number of bits of each string except the last one, which may be shorter.
    pub(crate) longest: u64,
    /// k, the number of hashes. A key has one position for each hash.
    pub(crate) hashes: u32,
    /// Number of hashes that are evenly spread over a string. The number of keys is estimated from
    /// these hashes.
    pub(crate) spread_hashes: u32,
    /// Number of crowded bits at the start of each string: uneven hashes set these bits sooner than
    /// the rest. The estimate of the number of keys leaves these bits out. A multiple of 8.
    pub(crate) crowded_bits: u64,
    /// Finds the positions of a text.
    pub(crate) place: Place,
    /// Computes [`BitStrings::error_rate`].
    pub(crate) rate: fn(&Self, keys: u64) -> f64,
}

impl BitStrings {
    /// Returns a layout with one string of `m` bits, over which all hashes are evenly spread.
    pub(crate) fn new(m: u64, hashes: u32, place: Place) -> Self {
        Self {
            strings: 1,
            codes: |layout| (0..layout.strings).collect(),
            separator: None,
            record: None,
            m,
            longest: m,
            hashes,
            spread_hashes: hashes,
            crowded_bits: 0,
            place,
            rate: rate_by_string,
        }
    }

    /// Returns the number of bits at the start of a string that the layout can set.
    pub(crate) fn bits(&self, string: u32) -> u64 {
        self.m.saturating_sub(u64::from(string) * self.longest).min(self.longest)
    }

    /// Returns the mask that takes the position from a hash, for strings with a power of two of
    /// bits.
    pub(crate) fn mask(&self) -> u32 {
        // A Redis string has at most 2^32 bits.
        #[allow(clippy::cast_possible_truncation)]
        let mask = (self.longest - 1) as u32;
        mask
    }

    /// Appends the positions of a text: see [`Place`].
    ///
    /// # Errors
    /// The other project refuses the text, too. Then no position is appended.
    pub(crate) fn push_positions(
        &self,
        text: &[u8],
        positions: &mut Vec<BitPosition>,
    ) -> Result<(), PlacementError> {
        (self.place)(self, text, positions)
    }

    /// Returns the share of unseen keys that a filter with `keys` keys reports as seen. All keys
    /// are hex digits of digests. This true rate may differ from the requested rate.
    pub(crate) fn error_rate(&self, keys: u64) -> f64 {
        (self.rate)(self, keys)
    }

    /// Returns the numbers of the strings that at least one code chooses, in order. The other
    /// strings never get a bit.
    pub(crate) fn used_strings(&self) -> Vec<u32> {
        let mut used = self.leads_to();
        used.dedup();
        used
    }

    /// Returns one string number for each code, in order: the number of the string that the code
    /// chooses.
    fn leads_to(&self) -> Vec<u32> {
        let codes = (self.codes)(self).into_iter();
        let mut strings: Vec<u32> = codes.map(|code| code % self.strings).collect();
        strings.sort_unstable();
        strings
    }
}

/// Computes the error rate of a filter whose keys have all their bits in one string.
///
/// With m bits in each string and k hashes, this rate is the sum, over the strings, of
///
/// ```text
/// s (1 - (1 - 1/m)^(k keys s))^k
/// ```
///
/// Here s is the fraction of the codes that choose the string.
fn rate_by_string(layout: &BitStrings, keys: u64) -> f64 {
    let (hashes, bits) = (f64::from(layout.hashes), layout.bits(0) as f64);
    let strings = layout.leads_to();
    let shares = strings.chunk_by(PartialEq::eq).map(|it| it.len() as f64 / strings.len() as f64);
    shares.map(|share| share * fill(hashes * share * keys as f64, bits).powf(hashes)).sum()
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

/// Returns the share of `bits` bits that are set after `draws` draws, if all bits are equally
/// likely.
pub(crate) fn fill(draws: f64, bits: f64) -> f64 {
    if draws <= 0.0 { 0.0 } else { -(draws * (-1.0 / bits).ln_1p()).exp_m1() }
}

/// Returns the error rate of a filter of `bits` bits with `keys` keys, if all bits are equally
/// likely.
pub(crate) fn rate(keys: f64, hashes: u32, bits: f64) -> f64 {
    let hashes = f64::from(hashes);
    fill(hashes * keys, bits).powf(hashes)
}
