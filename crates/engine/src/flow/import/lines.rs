//! Lines of hex digits: the file `requests.seen` of older versions of Scrapy.

use super::cut::Cut;
use super::frames;
use crate::flow::input::BLOCK;
use urlseen_fingerprint::Fingerprint;

/// Cuts lines of hex digits off the front of an input.
#[derive(Debug, Default)]
pub(super) struct FingerprintLines {
    /// Number of lines so far, including empty ones.
    pub(super) count: u64,
    /// True while the rest of a line longer than [`BLOCK`] is skipped.
    is_passing: bool,
}

impl FingerprintLines {
    /// Makes a cutter that continues after this number of lines.
    pub(super) fn behind(count: u64) -> Self {
        Self { count, is_passing: false }
    }

    /// Cuts the complete lines off the front of `bytes`, up to a frame, and returns the number of
    /// bytes that are used up. Otherwise all bytes are used up if `is_end` is true, or if at least
    /// [`BLOCK`] bytes follow the last line feed.
    pub(super) fn cut(&mut self, bytes: &[u8], is_end: bool, cut: &mut Cut<'_>) -> usize {
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if let Some(frame) = frame_in(&bytes[begin..end]) {
                return self.last_line(&bytes[begin..begin + frame], begin, cut);
            }
            self.line(&bytes[begin..end], begin, cut);
            begin = end + 1;
        }
        let rest = &bytes[begin..];
        if let Some(frame) = frame_in(rest) {
            return self.last_line(&rest[..frame], begin, cut);
        }
        if is_end && !rest.is_empty() {
            // An old Scrapy that was killed can leave an incomplete line, which is reported as
            // malformed.
            self.line(rest, begin, cut);
            return bytes.len();
        }
        if rest.len() >= BLOCK {
            if !std::mem::replace(&mut self.is_passing, true) {
                cut.bad(begin, Some(self.count + 1), || {
                    "a line of more than 512 KiB, which is skipped".to_owned()
                });
            }
            return bytes.len();
        }
        begin
    }

    /// Cuts what a killed Scrapy has left of a line before a frame. Returns the position of the
    /// frame.
    fn last_line(&mut self, line: &[u8], at: usize, cut: &mut Cut<'_>) -> usize {
        if !line.is_empty() {
            self.line(line, at, cut);
        }
        at + line.len()
    }

    fn line(&mut self, line: &[u8], at: usize, cut: &mut Cut<'_>) {
        self.count += 1;
        if std::mem::take(&mut self.is_passing) {
            return;
        }
        // On Windows, a line ends with a carriage return and a line feed.
        let line = line.trim_ascii_end();
        if !line.is_empty() {
            cut.push_hex(line, at, Some(self.count));
        }
    }
}

/// Finds a frame of a later Scrapy in a line.
fn frame_in(line: &[u8]) -> Option<usize> {
    memchr::memchr_iter(0, line).find(|&at| frames::begins(&line[at..]) == Some(true))
}

/// Returns true if a line of hex digits begins at this index. Returns `None` if more bytes are
/// needed to know.
pub(super) fn begins_at(bytes: &[u8], at: usize, is_end: bool) -> Option<bool> {
    match bytes.get(at) {
        Some(digit) if digit.is_ascii_hexdigit() => begins(&bytes[at..], is_end),
        _ => Some(false),
    }
}

/// Returns true if an input that begins with `bytes` consists of lines of hex digits. Returns
/// `None` if more bytes are needed to know.
pub(super) fn begins(bytes: &[u8], is_end: bool) -> Option<bool> {
    /// Number of bytes that is greater than the length of every line with a fingerprint.
    const ENOUGH: usize = 80;
    let text = bytes.trim_ascii_start();
    let end = memchr::memchr(b'\n', text);
    if end.is_none() && text.len() < ENOUGH && !is_end {
        return None;
    }
    let line = &text[..end.unwrap_or(text.len())];
    Some(Fingerprint::from_hex(line.trim_ascii_end()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA1: &str = "0123456789abcdef0123456789ABCDEF01234567";

    /// Cuts all of `text` in steps. Each step reads `step` more bytes. Returns the length of each
    /// digest, and the offset, line and error of each malformed entry.
    fn cut(text: &str, step: usize) -> (Vec<usize>, Vec<(u64, u64, String)>) {
        let mut lines = FingerprintLines::default();
        let (mut lengths, mut bad) = (Vec::new(), Vec::new());
        let (mut begin, mut end) = (0, 0);
        while end < text.len() {
            end = (end + step).min(text.len());
            let mut cut = Cut::new("", Some(begin as u64));
            begin += lines.cut(&text.as_bytes()[begin..end], end == text.len(), &mut cut);
            let page = cut.into_page();
            lengths.extend(page.items.iter().map(<[u8]>::len));
            let these = page.bad.into_iter();
            bad.extend(these.map(|bad| (bad.offset.unwrap(), bad.line.unwrap(), bad.reason)));
        }
        assert_eq!(begin, text.len(), "all bytes are used");
        (lengths, bad)
    }

    #[test]
    fn hex_is_cut_and_other_lines_are_reported_for_every_size_of_reads() {
        let (md5, sha256) = (&SHA1[..32], format!("{SHA1}{}", &SHA1[..24]));
        let text = format!("{SHA1}\n\nhttp://a/\n{md5}\r\n{sha256}\nx{SHA1}\n{}", &SHA1[1..]);
        let places = [(42, 3), (42 + 10 + 34 + 65, 6), (42 + 10 + 34 + 65 + 42, 7)];
        for step in [1, 2, 41, 1000] {
            let (lengths, bad) = cut(&text, step);
            assert_eq!(lengths, [20, 16, 32], "step {step}");
            let named: Vec<_> = bad.iter().map(|&(at, line, _)| (at, line)).collect();
            assert_eq!(named, places, "step {step}");
            assert!(bad[0].2.starts_with("not 32, 40 or 64 hex digits: 'http://a/'. To add URLs"));
        }
        assert_eq!(cut(SHA1, 7).0, [20], "the last line needs no end");
    }

    #[test]
    fn lines_end_before_a_frame_of_a_later_scrapy() {
        for torn in 0..40 {
            let lines = format!("{SHA1}\n{}", &SHA1[..torn]);
            let bytes = [lines.as_bytes(), b"\0\x14\nmore\n"].concat();
            for is_end in [false, true] {
                let (mut cutter, mut cut) = (FingerprintLines::default(), Cut::new("", Some(0)));
                assert_eq!(cutter.cut(&bytes, is_end, &mut cut), lines.len(), "{torn}");
                let page = cut.into_page();
                let (whole, bad) = match torn {
                    0 => (1, 0),
                    32 => (2, 0),
                    _ => (1, 1),
                };
                assert_eq!((page.items.iter().count(), page.bad.len()), (whole, bad), "{torn}");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_reported_once() {
        let text = format!("{SHA1}\n{}\n{SHA1}\nx\n", "0".repeat(3 * BLOCK));
        let (lengths, bad) = cut(&text, BLOCK);
        assert_eq!(lengths, [20, 20]);
        assert_eq!((bad[0].0, bad[0].1), (41, 2), "{bad:?}");
        assert!(bad[0].2.starts_with("a line of more than"));
        assert_eq!((bad[1].1, bad.len()), (4, 2));
    }

    #[test]
    fn hex_lines_are_detected_by_the_first_line() {
        for (text, is_end, is_hex) in [
            (SHA1.to_owned(), false, None),
            (SHA1.to_owned(), true, Some(true)),
            (format!("\r\n{SHA1}\r\n"), false, Some(true)),
            (format!("{SHA1}0\n"), false, Some(false)),
            ("about:blank\n".to_owned(), false, Some(false)),
            ("0".repeat(80), false, Some(false)),
            (String::new(), false, None),
        ] {
            assert_eq!(begins(text.as_bytes(), is_end), is_hex, "{text:?}");
        }
    }
}
