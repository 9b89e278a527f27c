//! Computed memory and error rate of a filter with a given number of keys.

/// Computed size and error rate of a filter that holds some number of keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlook {
    /// Number of strings or layers that have bits; 0 for a set of keys.
    pub strings: usize,
    /// Number of bits of the strings or layers; 0 for a set of keys.
    pub bits: u64,
    /// Number of bits that a key sets in the newest layer; 0 for a set of keys.
    pub hashes: u32,
    /// Minimum and maximum of the memory in bytes.
    pub bytes: [u64; 2],
    /// Share of unseen keys that the filter reports as seen.
    pub error_rate: f64,
    /// Reason why the filter cannot have the requested error rate.
    pub warning: Option<String>,
}

impl Outlook {
    /// Computes the outlook of Redis strings with these numbers of bits.
    pub(super) fn of_strings(bits: &[u64], hashes: u32, error_rate: f64) -> Self {
        let bytes = bits.iter().map(|bits| allocated(bits.div_ceil(8))).sum();
        let (strings, bits) = (bits.len(), bits.iter().sum());
        Self { strings, bits, hashes, bytes: [bytes; 2], error_rate, ..Self::default() }
    }
}

/// Returns the memory that Redis takes for a string of this length, in bytes. Redis allocates with
/// jemalloc, which has four sizes from one power of two to the next. A string below a mebibyte may
/// take more, because Redis reserves up to twice the length.
fn allocated(bytes: u64) -> u64 {
    // Upper bound for the flags, the lengths and the zero after the last byte.
    const HEADER: u64 = 32;
    let taken = bytes + HEADER;
    taken.next_multiple_of(taken.next_power_of_two() / 8)
}
