//! Warning before the memory for a filter that grows ends.

use indicatif::BinaryBytes;
use urlseen_core::filter::memory::{Available, SPARE};

/// Growth of a filter, in bytes, after which the available memory is read again.
const STEP: u64 = 2 << 20;

/// Minimum growth for which there should be memory. It is several steps, so that a small filter
/// also warns before its growth fails.
const LEAST: u64 = 8 * STEP;

/// Observer of a filter that takes memory while it grows. It warns once.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    /// Size of the filter at which the available memory is read again.
    next: u64,
    is_told: bool,
}

impl MemoryWatch {
    /// Creates the observer of a filter that takes `bytes` bytes at the start.
    pub(super) fn new(bytes: u64) -> Self {
        Self { next: bytes + STEP, is_told: false }
    }

    /// Returns a warning if less memory is available than the filter takes for its next growth, a
    /// quarter of its size. The memory that a growing filter leaves free is not available to it.
    pub(super) fn observe(
        &mut self,
        bytes: u64,
        available: impl FnOnce() -> Option<Available>,
    ) -> Option<String> {
        if bytes < self.next || self.is_told {
            return None;
        }
        self.next = bytes + STEP;
        let Available { bytes: left, limit } = available()?;
        self.is_told = left < SPARE + (bytes / 4).max(LEAST);
        self.is_told.then(|| {
            let [bytes, left, spare] = [bytes, left, SPARE].map(BinaryBytes);
            format!(
                "the filter takes {bytes} and still grows, and {left} are available {limit}. The \
                 daemon ends when less than {spare} are left, and loses nothing. Give it more \
                 memory before that"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use urlseen_core::filter::memory::Limit;

    use super::*;

    #[test]
    fn the_end_of_the_memory_is_told_once_and_in_time() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut observe = |bytes: u64, left: u64| {
            watch.observe(bytes << 20, || {
                Some(Available { bytes: left << 20, limit: Limit::Machine })
            })
        };
        assert_eq!(observe(100, 1), None, "the filter has not grown");
        assert_eq!(observe(200, 64 + 50), None);
        assert_eq!(observe(201, 1), None, "the memory was read a short time ago");
        let warning = observe(220, 64 + 54).unwrap();
        let expected = "the filter takes 220.00 MiB and still grows, and 118.00 MiB are available \
                        on this machine. The daemon ends when less than 64.00 MiB are left";
        assert!(warning.starts_with(expected), "{warning}");
        assert_eq!(observe(300, 1), None);
    }

    #[test]
    fn a_small_filter_warns_before_its_growth_fails() {
        let mut watch = MemoryWatch::new(1 << 20);
        let steps = (5..64).step_by(4);
        let told = steps.map(|bytes: u64| {
            let available = Available { bytes: (100 - bytes) << 20, limit: Limit::Machine };
            (bytes, watch.observe(bytes << 20, || Some(available)).is_some())
        });
        // The growth would fail at 36 MiB.
        assert_eq!(told.filter(|told| told.1).map(|told| told.0).collect::<Vec<_>>(), [21]);
    }
}
