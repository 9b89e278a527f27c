//! Digests and malformed entries that are cut off the front of an input.

use crate::flow::feed::{Bad, Page};
use crate::item::Items;
use urlseen_fingerprint::Fingerprint;

/// Maximum number of bytes of a malformed entry that a message shows.
const SHOWN: usize = 60;

/// Maximum number of malformed entries of a page that are reported one by one. Further ones are
/// only counted.
const NAMED: usize = 20;

/// Digests and malformed entries of a page.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    /// Name of the input, for messages.
    source: &'a str,
    /// Offset of this cut's first byte in the input; `None` if the entries have no offsets.
    base: Option<u64>,
    digests: Vec<u8>,
    /// End of each digest in `digests`.
    ends: Vec<usize>,
    bad: Vec<Bad>,
    bad_count: u64,
}

impl<'a> Cut<'a> {
    /// Creates an empty cut of bytes that begin at the offset `base` of the input.
    pub(super) fn new(source: &'a str, base: Option<u64>) -> Self {
        Self { source, base, digests: vec![], ends: vec![], bad: vec![], bad_count: 0 }
    }

    /// Adds the raw bytes of a fingerprint.
    #[inline]
    pub(super) fn push(&mut self, digest: &[u8]) {
        self.digests.extend_from_slice(digest);
        self.ends.push(self.digests.len());
    }

    /// Adds a fingerprint in hex, whose text begins at the index `at` of the bytes. Other text is a
    /// malformed entry.
    pub(super) fn push_hex(&mut self, text: &[u8], at: usize, line: Option<u64>) {
        let Some(fingerprint) = Fingerprint::from_hex(text) else {
            let advice = if self.bad.is_empty() { advice(text) } else { "" };
            let reason = || format!("not 32, 40 or 64 hex digits: {}{advice}", shown(text));
            return self.bad(at, line, reason);
        };
        self.push(fingerprint.as_bytes());
    }

    /// Counts a malformed entry at the index `at` of the bytes.
    pub(super) fn bad(&mut self, at: usize, line: Option<u64>, reason: impl FnOnce() -> String) {
        if self.bad.len() < NAMED {
            let offset = self.base.map(|base| base + at as u64);
            self.bad.push(Bad { source: self.source.to_owned(), offset, line, reason: reason() });
        }
        self.bad_count += 1;
    }

    /// Makes a page of the digests, and of the malformed entries that are to be reported.
    pub(super) fn into_page(self) -> Page {
        let mut begin = 0;
        let place = |end| std::mem::replace(&mut begin, end)..end;
        let places = self.ends.into_iter().map(place).collect();
        let items = Items::new(self.digests.into(), places);
        Page { items, bad: self.bad, bad_count: self.bad_count, ..Page::default() }
    }
}

/// Returns what to do with an input of URLs, if this text has one.
pub(super) fn advice(text: &[u8]) -> &'static str {
    if memchr::memmem::find(text, b"://").is_some() {
        ". To add URLs: urlseen filter --storage DIR URLS"
    } else {
        ""
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
    fn malformed_entries_are_reported_up_to_a_bound_and_all_counted() {
        let mut cut = Cut::new("", Some(1000));
        cut.push(b"0123");
        for at in 0..50 {
            cut.bad(at, Some(7), || "odd".to_owned());
        }
        cut.push(b"45");
        let Page { items, bad, bad_count, .. } = cut.into_page();
        assert_eq!(items.iter().collect::<Vec<_>>(), [&b"0123"[..], b"45"]);
        assert_eq!((bad.len(), bad_count), (NAMED, 50));
        assert_eq!(bad[1].to_string(), ", line 7 (byte 1001): odd");
    }

    #[test]
    fn control_characters_are_escaped_in_messages() {
        assert_eq!(shown(b"a'\x1b[2J\xff"), "'a\\'\\x1b[2J\\xff'");
        assert_eq!(shown(&[b'a'; 61]), format!("'{}…'", "a".repeat(60)));
    }
}
