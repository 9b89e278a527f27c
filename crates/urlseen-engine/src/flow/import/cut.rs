//! Digests and malformed entries, cut off the front of an input.

use crate::item::Items;

/// Maximum number of characters of a malformed entry that are shown.
const SHOWN: usize = 60;

/// Maximum number of malformed entries of a page that are named. Further ones are only counted.
const NAMED: usize = 20;

/// Why something is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// A line or a member of a set.
    #[error("not 32, 40 or 64 hex digits: {shown}")]
    NoHex {
        /// First bytes of it, escaped.
        shown: String,
    },
    /// A line that does not end.
    #[error("a line of more than 512 KiB, which is passed over")]
    Endless,
    /// Bytes where a fingerprint's length should be.
    #[error(
        "no fingerprint begins here (a length of {found}, not of 16, 20 or 32 bytes); reading goes \
         on where the next one does"
    )]
    NoFrame {
        /// The length that stands there.
        found: u16,
    },
    /// The end of a file that was not written to its end.
    #[error("the last {bytes} bytes are no whole fingerprint: who wrote them was killed")]
    Torn {
        /// Number of bytes that are left.
        bytes: usize,
    },
    /// A file of something else.
    #[error(
        "neither lines of 32, 40 or 64 hex digits nor a requests.seen of Scrapy; nothing of it is \
         imported. It begins with {shown}"
    )]
    Neither {
        /// Beginning of the entry, escaped.
        shown: String,
    },
}

/// Offset of a malformed entry, the number of its line if it is one, and the error.
pub(super) type BadPlace = (u64, Option<u64>, CutError);

/// Entries that were cut off.
#[derive(Debug, Default)]
pub struct Cut {
    /// Offset in the input of the bytes that are cut.
    base: u64,
    digests: Vec<u8>,
    /// End of each digest in `bytes`.
    ends: Vec<usize>,
    bad: Vec<BadPlace>,
    bad_count: u64,
}

impl Cut {
    /// Nothing yet, from bytes that begin at `base` of the input.
    pub(super) fn new(base: u64) -> Self {
        Self { base, ..Self::default() }
    }

    /// Adds the raw bytes of a fingerprint.
    #[inline]
    pub(super) fn push(&mut self, digest: &[u8]) {
        self.digests.extend_from_slice(digest);
        self.ends.push(self.digests.len());
    }

    /// Counts a malformed entry at this place of the bytes.
    pub(super) fn bad(&mut self, at: usize, line: Option<u64>, reason: impl FnOnce() -> CutError) {
        if self.bad.len() < NAMED {
            self.bad.push((self.base + at as u64, line, reason()));
        }
        self.bad_count += 1;
    }

    /// Number of malformed entries.
    pub(super) fn bad_count(&self) -> u64 {
        self.bad_count
    }

    /// The digests, and the first of what was bad.
    pub(super) fn into_parts(self) -> (Items, Vec<BadPlace>) {
        let mut begin = 0;
        let place = |end| std::mem::replace(&mut begin, end)..end;
        let places = self.ends.into_iter().map(place).collect();
        (Items::new(self.digests.into(), places), self.bad)
    }
}

/// Returns the first bytes, escaped, for messages: nothing in the result moves a cursor.
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
