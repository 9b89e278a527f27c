//! The file `requests.seen` of Scrapy 2.19. Each fingerprint is a frame: its length in two bytes,
//! the high byte first, then its raw bytes.

use super::cut::Cut;
use super::lines;

/// Size in bytes of the length at the start of a frame.
const LENGTH: usize = 2;

/// Number of bytes of which the longest frame and the length after it, or a line of hex digits,
/// take less.
const LOOK: usize = 80;

/// Cuts frames off the front of an input.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Number of frames that were cut.
    pub(super) count: u64,
    /// True if the start of the next frame is unknown and has to be searched.
    is_lost: bool,
}

impl Frames {
    /// Makes a cutter that continues after this number of frames.
    pub(super) fn behind(count: u64) -> Self {
        Self { count, is_lost: false }
    }

    /// Cuts the complete frames off the front of `bytes`, up to a line of hex digits. Returns the
    /// number of bytes that are used up. If `is_end` is true, otherwise all bytes are used up.
    ///
    /// A crawl that is killed leaves an incomplete frame, and its next run appends complete frames.
    /// So if no valid length follows a frame, the bytes of this frame may be an incomplete frame
    /// and the start of the next frame. In this case, the search for the next frame begins one byte
    /// after the start of the doubtful frame.
    pub(super) fn cut(&mut self, bytes: &[u8], is_end: bool, cut: &mut Cut<'_>) -> usize {
        let no_frame = |found: u16| {
            format!(
                "no fingerprint begins here (its length is {found}, and must be 16, 20 or 32 \
                 bytes); the import continues at the next fingerprint"
            )
        };
        let mut at = 0;
        loop {
            if self.is_lost {
                match find(bytes, at, is_end) {
                    Some(found) => at = found,
                    None if is_end => return bytes.len(),
                    // A frame may begin in the last bytes, which are too few to recognize it.
                    None => return at.max(bytes.len().saturating_sub(LOOK)),
                }
                self.is_lost = false;
            }
            let left = bytes.len() - at;
            if left == 0 || lines::begins_at(bytes, at, is_end) != Some(false) {
                return at;
            }
            match length_at(bytes, at) {
                None if !is_end => return at,
                Some(Ok(length)) if left < LENGTH + length && !is_end => return at,
                Some(Ok(length)) if left >= LENGTH + length => {
                    let next = at + LENGTH + length;
                    let line = lines::begins_at(bytes, next, is_end);
                    let follows = length_at(bytes, next).filter(|_| line != Some(true));
                    if !is_end && (line.is_none() || follows.is_none() && line == Some(false)) {
                        return at;
                    }
                    cut.push(&bytes[at + LENGTH..next]);
                    self.count += 1;
                    if let Some(Err(found)) = follows {
                        cut.bad(next, None, || no_frame(found));
                        self.is_lost = true;
                        at += 1;
                    } else {
                        at = next;
                    }
                }
                Some(Err(found)) => {
                    cut.bad(at, None, || no_frame(found));
                    self.is_lost = true;
                    at += 1;
                }
                None | Some(Ok(_)) => {
                    cut.bad(at, None, || {
                        format!(
                            "the last {left} bytes are an incomplete fingerprint and are skipped; \
                             the crawl that wrote the file was probably killed"
                        )
                    });
                    return bytes.len();
                }
            }
        }
    }
}

/// Returns the length at index `at`: `Ok` if a fingerprint can have this length, otherwise `Err`.
/// Returns `None` if `bytes` ends before the end of the length.
fn length_at(bytes: &[u8], at: usize) -> Option<Result<usize, u16>> {
    let length = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    Some(if is_length(length) { Ok(usize::from(length)) } else { Err(length) })
}

/// Returns true if a fingerprint can have this number of bytes.
fn is_length(length: u16) -> bool {
    matches!(length, 16 | 20 | 32)
}

/// Returns true if an input that begins with `bytes` consists of frames. Returns `None` if more
/// bytes are needed to know.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [] | [0] => None,
        [high, low, ..] => Some(is_length(u16::from_be_bytes([*high, *low]))),
        [_] => Some(false),
    }
}

/// Finds the first frame or line of hex digits that begins at the index `from` or later, and
/// returns its index. A frame counts only if a valid length follows it, or if it ends at the end of
/// the input.
fn find(bytes: &[u8], from: usize, is_end: bool) -> Option<usize> {
    (from..bytes.len()).find(|&at| {
        if lines::begins_at(bytes, at, is_end) == Some(true) {
            return true;
        }
        let Some(Ok(length)) = length_at(bytes, at) else { return false };
        let next = at + LENGTH + length;
        matches!(length_at(bytes, next), Some(Ok(_))) || is_end && next == bytes.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(byte: u8, length: u8) -> Vec<u8> {
        [&[0, length][..], &vec![byte; usize::from(length)]].concat()
    }

    fn frames(bytes: impl IntoIterator<Item = u8>) -> Vec<u8> {
        bytes.into_iter().flat_map(|byte| frame(byte, 20)).collect()
    }

    /// Cuts all of `bytes` in steps. Each step reads `step` more bytes. Returns the first byte of
    /// each digest, and the offset and error of each malformed entry.
    fn cut(bytes: &[u8], step: usize) -> (Vec<u8>, Vec<(u64, String)>) {
        let mut frames = Frames::default();
        let (mut firsts, mut bad) = (Vec::new(), Vec::new());
        let (mut begin, mut end) = (0, 0);
        while end < bytes.len() {
            end = (end + step).min(bytes.len());
            let mut cut = Cut::new("", Some(begin as u64));
            begin += frames.cut(&bytes[begin..end], end == bytes.len(), &mut cut);
            let page = cut.into_page();
            firsts.extend(page.items.iter().map(|digest| digest[0]));
            bad.extend(page.bad.into_iter().map(|bad| (bad.offset.unwrap(), bad.reason)));
        }
        assert_eq!(begin, bytes.len(), "all bytes are used");
        assert_eq!(frames.count, firsts.len() as u64);
        (firsts, bad)
    }

    #[test]
    fn frames_of_all_lengths_are_cut_for_every_size_of_reads() {
        let bytes = [frame(b'a', 20), frame(b'b', 16), frame(b'c', 32), frame(b'd', 20)].concat();
        for step in 1..=bytes.len() {
            assert_eq!(cut(&bytes, step), (b"abcd".to_vec(), vec![]), "step {step}");
        }
        assert_eq!(cut(b"", 1), (vec![], vec![]));
    }

    #[test]
    fn an_incomplete_last_frame_is_reported_and_the_others_are_cut() {
        let bytes = frames(b'a'..=b'c');
        for torn in 1..22 {
            let (firsts, bad) = cut(&bytes[..44 + torn], 7);
            assert_eq!(firsts, b"ab", "torn after {torn}");
            assert_eq!(bad.len(), 1);
            assert_eq!(bad[0].0, 44);
            assert!(bad[0].1.contains(&format!("last {torn} bytes")), "{bad:?}");
        }
    }

    /// A Scrapy that was killed and started again appends after the incomplete frame.
    #[test]
    fn whole_frames_around_an_incomplete_frame_are_cut() {
        for torn in 1..22 {
            let bytes = [&frames(b'a'..=b'c')[..44 + torn], &frames(b'd'..=b'p')].concat();
            for step in [1, 7, 50, bytes.len()] {
                let (firsts, bad) = cut(&bytes, step);
                let whole: Vec<u8> = firsts.iter().copied().filter(|&it| it != b'c').collect();
                assert_eq!(whole[..2], *b"ab", "torn after {torn}, step {step}");
                assert!(whole.ends_with(b"defghijklmnop"), "torn after {torn}: {whole:?}");
                assert_eq!(bad.len(), 1, "torn after {torn}, step {step}: {bad:?}");
            }
        }
    }

    #[test]
    fn text_after_the_frames_is_reported_once() {
        let bytes = [&frames(b'a'..=b'b')[..], &b"http://example.com/".repeat(100)].concat();
        for step in [1, 60, bytes.len()] {
            let (firsts, bad) = cut(&bytes, step);
            assert_eq!(firsts, b"ab");
            assert_eq!(bad.len(), 1, "{bad:?}");
            assert_eq!(bad[0].0, 44);
        }
    }

    /// An older Scrapy has continued the file, also after a frame that was torn by a kill.
    #[test]
    fn frames_end_before_a_line_of_hex_digits() {
        let line = format!("{}\n", "0a".repeat(20));
        // After 14 bytes, the rest of the line is one of 32 digits.
        for torn in (0..22).filter(|&torn| torn != 14) {
            let bytes = [&frames(b'a'..=b'c')[..44 + torn], line.as_bytes()].concat();
            for step in [1, 60, bytes.len()] {
                let (mut frames, mut begin, mut firsts) = (Frames::default(), 0, Vec::new());
                for end in (step..bytes.len()).step_by(step).chain([bytes.len()]) {
                    let mut cut = Cut::new("", Some(begin as u64));
                    begin += frames.cut(&bytes[begin..end], end == bytes.len(), &mut cut);
                    firsts.extend(cut.into_page().items.iter().map(|digest| digest[0]));
                }
                assert_eq!((begin, &firsts[..2]), (44 + torn, &b"ab"[..]), "{torn}, step {step}");
            }
        }
    }

    #[test]
    fn frames_are_detected_by_their_first_bytes() {
        for (bytes, is_one) in [
            (&b""[..], None),
            (b"\0", None),
            (b"\0\x14", Some(true)),
            (b"\0\x10a", Some(true)),
            (b"\0\x20", Some(true)),
            (b"\0\x15", Some(false)),
            (b"0", Some(false)),
            (b"00", Some(false)),
        ] {
            assert_eq!(begins(bytes), is_one, "{bytes:?}");
        }
    }
}
