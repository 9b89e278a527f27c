//! Warning before the memory for a filter that grows ends.

use indicatif::BinaryBytes;
use urlseen_core::filter::memory::Available;

/// Growth of a filter, in bytes, after which the available memory is read again.
const STEP: u64 = 16 << 20;

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
    /// quarter of its size.
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
        self.is_told = left < bytes / 4;
        self.is_told.then(|| {
            let (bytes, left) = (BinaryBytes(bytes), BinaryBytes(left));
            format!(
                "the filter takes {bytes} and still grows, and {left} are available {limit}. The \
                 daemon ends when this memory is used up, and loses nothing. Give it more memory \
                 before that"
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
        assert_eq!(observe(200, 50), None);
        assert_eq!(observe(210, 1), None, "the memory was read a short time ago");
        let warning = observe(220, 54).unwrap();
        let expected = "the filter takes 220.00 MiB and still grows, and 54.00 MiB are available \
                        on this machine.";
        assert!(warning.starts_with(expected), "{warning}");
        assert_eq!(observe(300, 1), None);
    }
}
