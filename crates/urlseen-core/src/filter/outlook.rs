//! Memory and error rate of a filter by the number of its keys, without making one.

/// A filter that holds some number of keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// Strings or layers that get bits; 0 for a set of keys.
    pub strings: usize,
    /// Bits of these; 0 for a set of keys.
    pub bits: u64,
    /// Bits that a key sets, in the newest layer; 0 for a set of keys.
    pub hashes: u32,
    /// Bytes of memory, the least and the most.
    pub bytes: [u64; 2],
    /// Share of unseen keys that the filter reports as seen.
    pub error_rate: f64,
    /// Reason that the filter cannot have the error rate that it was made for.
    pub warning: Option<String>,
}

impl Outlook {
    /// Outlook of strings of these lengths in Redis.
    pub(super) fn of_strings(
        lengths: impl ExactSizeIterator<Item = u64>,
        bits: u64,
        hashes: u32,
        error_rate: f64,
    ) -> Self {
        let strings = lengths.len();
        let bytes = [lengths.map(allocated).sum(); 2];
        Self { strings, bits, hashes, bytes, error_rate, warning: None }
    }

    /// Outlook of an exact set that takes this memory.
    pub(super) fn of_set(bytes: [u64; 2]) -> Self {
        Self { strings: 0, bits: 0, hashes: 0, bytes, error_rate: 0.0, warning: None }
    }
}

/// Memory that Redis takes for a string, with the string's header. Redis allocates with jemalloc,
/// which has four sizes from one power of two to the next. A string below a mebibyte may take more,
/// because Redis lets it grow to twice its length.
fn allocated(bytes: u64) -> u64 {
    // Flags, lengths and the zero after the last byte; far below the distance of two sizes.
    const HEADER: u64 = 32;
    let taken = bytes + HEADER;
    taken.next_multiple_of(taken.next_power_of_two() / 8)
}
