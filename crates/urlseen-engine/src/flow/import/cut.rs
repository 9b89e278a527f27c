//! Digests and malformed entries that are cut off the front of an input.

use crate::item::Items;

/// Maximum number of bytes of a malformed entry that a message shows.
const SHOWN: usize = 60;

/// Maximum number of malformed entries of a page that are reported one by one. Further ones are
/// only counted.
const NAMED: usize = 20;

/// Reason that an entry is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// A line, or a member of a set, that is not a fingerprint in hex.
    #[error("not 32, 40 or 64 hex digits: {shown}")]
    NoHex {
        /// First bytes of the entry, escaped.
        shown: String,
    },
    /// A line longer than the maximum.
    #[error("a line of more than 512 KiB, which is skipped")]
    Endless,
    /// Two bytes that are not the length of a fingerprint, at a place where a length is expected.
    #[error(
        "no fingerprint begins here (its length is {found}, and must be 16, 20 or 32 bytes); the \
         import continues at the next fingerprint"
    )]
    NoFrame {
        /// Value of the two bytes.
        found: u16,
    },
    /// An incomplete fingerprint at the end of a file.
    #[error(
        "the last {bytes} bytes are an incomplete fingerprint and are skipped; the crawl that \
         wrote the file was probably killed"
    )]
    Torn {
        /// Number of bytes of the incomplete fingerprint.
        bytes: usize,
    },
    /// A file in an unknown format.
    #[error(
        "neither lines of 32, 40 or 64 hex digits nor a requests.seen of Scrapy; this input is \
         not imported. The input begins with {shown}"
    )]
    Neither {
        /// First bytes of the file, escaped.
        shown: String,
    },
}

/// Offset of a malformed entry, the number of its line if the input has lines, and the error.
pub(super) type BadPlace = (u64, Option<u64>, CutError);

/// Digests and malformed entries of a page.
#[derive(Debug, Default)]
pub struct Cut {
    /// Offset in the input of the first byte that is cut.
    base: u64,
    digests: Vec<u8>,
    /// End of each digest in `digests`.
    ends: Vec<usize>,
    bad: Vec<BadPlace>,
    bad_count: u64,
}

impl Cut {
    /// Creates an empty cut of bytes that begin at the offset `base` of the input.
    pub(super) fn new(base: u64) -> Self {
        Self { base, ..Self::default() }
    }

    /// Adds the raw bytes of a fingerprint.
    #[inline]
    pub(super) fn push(&mut self, digest: &[u8]) {
        self.digests.extend_from_slice(digest);
        self.ends.push(self.digests.len());
    }

    /// Counts a malformed entry at the index `at` of the bytes.
    pub(super) fn bad(&mut self, at: usize, line: Option<u64>, reason: impl FnOnce() -> CutError) {
        if self.bad.len() < NAMED {
            self.bad.push((self.base + at as u64, line, reason()));
        }
        self.bad_count += 1;
    }

    /// Returns the number of all malformed entries.
    pub(super) fn bad_count(&self) -> u64 {
        self.bad_count
    }

    /// Returns the digests, and the malformed entries that are to be reported.
    pub(super) fn into_parts(self) -> (Items, Vec<BadPlace>) {
        let mut begin = 0;
        let place = |end| std::mem::replace(&mut begin, end)..end;
        let places = self.ends.into_iter().map(place).collect();
        (Items::new(self.digests.into(), places), self.bad)
    }
}

/// Returns the first bytes in quotes, for messages. All control characters are escaped, because the
/// message may go to a terminal.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = format!("'{}", bytes[..bytes.len().min(SHOWN)].escape_ascii());
    text.push_str(if bytes.len() > SHOWN { "…'" } else { "'" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bad_is_named_up_to_a_bound_and_counted_beyond() {
        let mut cut = Cut::new(1000);
        cut.push(b"0123");
        for at in 0..50 {
            cut.bad(at, Some(7), || CutError::Endless);
        }
        cut.push(b"45");
        assert_eq!(cut.bad_count(), 50);
        let (digests, bad) = cut.into_parts();
        assert_eq!(digests.iter().collect::<Vec<_>>(), [&b"0123"[..], b"45"]);
        assert_eq!((bad.len(), bad[1].clone()), (NAMED, (1001, Some(7), CutError::Endless)));
    }

    #[test]
    fn nothing_that_is_shown_moves_a_cursor() {
        assert_eq!(shown(b"a'\x1b[2J\xff"), "'a\\'\\x1b[2J\\xff'");
        assert_eq!(shown(&[b'a'; 61]), format!("'{}…'", "a".repeat(60)));
    }
}
