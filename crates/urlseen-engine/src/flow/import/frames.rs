//! The file `requests.seen` as Scrapy 2.19 writes it: for each fingerprint its length in two bytes,
//! the high one first, and its raw bytes.

use super::cut::{Cut, CutError};

/// Bytes of the length before a frame.
const LENGTH: usize = 2;

/// The most bytes of a frame, and of the length that follows it.
const LOOK: usize = LENGTH + 32 + LENGTH;

/// Cutter of frames with their length before them.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Number of frames so far.
    pub(super) count: u64,
    /// True if the start of the next frame is unknown.
    is_lost: bool,
}

impl Frames {
    /// Continues after this number of frames.
    pub(super) fn behind(count: u64) -> Self {
        Self { count, is_lost: false }
    }

    /// Cuts what is whole off the front of `bytes`; how much that is. It is all of them if
    /// `is_end`.
    ///
    /// A crawl that was killed leaves a torn frame, and one that is started again writes on behind
    /// it. So where a frame is followed by no length, the next ones are looked for from its own
    /// begin on: it may have been taken for longer than it is.
    pub(super) fn cut(&mut self, bytes: &[u8], is_end: bool, cut: &mut Cut) -> usize {
        let mut at = 0;
        loop {
            if self.is_lost {
                match find(bytes, at, is_end) {
                    Some(found) => at = found,
                    None if is_end => return bytes.len(),
                    // A frame may begin in what was too short to tell.
                    None => return at.max(bytes.len().saturating_sub(LOOK)),
                }
                self.is_lost = false;
            }
            let left = bytes.len() - at;
            if left == 0 {
                return at;
            }
            match length_at(bytes, at) {
                None if !is_end => return at,
                Some(Ok(length)) if left < LENGTH + length && !is_end => return at,
                Some(Ok(length)) if left >= LENGTH + length => {
                    let next = at + LENGTH + length;
                    let follows = length_at(bytes, next);
                    if follows.is_none() && !is_end {
                        return at;
                    }
                    cut.push(&bytes[at + LENGTH..next]);
                    self.count += 1;
                    if let Some(Err(found)) = follows {
                        cut.bad(next, None, || CutError::NoFrame { found });
                        self.is_lost = true;
                        at += 1;
                    } else {
                        at = next;
                    }
                }
                Some(Err(found)) => {
                    cut.bad(at, None, || CutError::NoFrame { found });
                    self.is_lost = true;
                    at += 1;
                }
                None | Some(Ok(_)) => {
                    cut.bad(at, None, || CutError::Torn { bytes: left });
                    return bytes.len();
                }
            }
        }
    }
}

/// The length that stands there: of a fingerprint, or another one; `None` if it is not all there.
fn length_at(bytes: &[u8], at: usize) -> Option<Result<usize, u16>> {
    let length = u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    Some(if is_length(length) { Ok(usize::from(length)) } else { Err(length) })
}

/// Returns true if a fingerprint can have this number of bytes.
fn is_length(length: u16) -> bool {
    matches!(length, 16 | 20 | 32)
}

/// Returns true if a file with this beginning has frames; `None` as long as that is unknown.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [] | [0] => None,
        [high, low, ..] => Some(is_length(u16::from_be_bytes([*high, *low]))),
        [_] => Some(false),
    }
}

/// The first place from there on where a frame begins that a length, or the end, follows.
fn find(bytes: &[u8], from: usize, is_end: bool) -> Option<usize> {
    (from..bytes.len()).find(|&at| {
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

    /// The first bytes of what is cut, and where it is bad, reading so many bytes at once.
    fn cut(bytes: &[u8], step: usize) -> (Vec<u8>, Vec<(u64, String)>) {
        let mut frames = Frames::default();
        let (mut firsts, mut bad) = (Vec::new(), Vec::new());
        let (mut begin, mut end) = (0, 0);
        while end < bytes.len() {
            end = (end + step).min(bytes.len());
            let mut cut = Cut::new(begin as u64);
            begin += frames.cut(&bytes[begin..end], end == bytes.len(), &mut cut);
            let (digests, these) = cut.into_parts();
            firsts.extend(digests.iter().map(|digest| digest[0]));
            bad.extend(these.into_iter().map(|(at, _, reason)| (at, reason.to_string())));
        }
        assert_eq!(begin, bytes.len(), "all is used");
        assert_eq!(frames.count, firsts.len() as u64);
        (firsts, bad)
    }

    #[test]
    fn frames_of_all_lengths_are_cut_however_they_are_read() {
        let bytes = [frame(b'a', 20), frame(b'b', 16), frame(b'c', 32), frame(b'd', 20)].concat();
        for step in 1..=bytes.len() {
            assert_eq!(cut(&bytes, step), (b"abcd".to_vec(), vec![]), "step {step}");
        }
        assert_eq!(cut(b"", 1), (vec![], vec![]));
    }

    #[test]
    fn a_torn_end_is_named_and_costs_no_whole_frame() {
        let bytes = frames(b'a'..=b'c');
        for torn in 1..22 {
            let (firsts, bad) = cut(&bytes[..44 + torn], 7);
            assert_eq!(firsts, b"ab", "torn after {torn}");
            assert_eq!(bad.len(), 1);
            assert_eq!(bad[0].0, 44);
            assert!(bad[0].1.contains(&format!("last {torn} bytes")), "{bad:?}");
        }
    }

    /// Scrapy, killed and started again, continues to write after the torn frame.
    #[test]
    fn a_torn_frame_in_the_middle_costs_no_whole_frame() {
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
    fn what_has_no_more_frames_is_bad_once() {
        let bytes = [&frames(b'a'..=b'b')[..], &b"http://example.com/".repeat(100)].concat();
        for step in [1, 60, bytes.len()] {
            let (firsts, bad) = cut(&bytes, step);
            assert_eq!(firsts, b"ab");
            assert_eq!(bad.len(), 1, "{bad:?}");
            assert_eq!(bad[0].0, 44);
        }
    }

    #[test]
    fn the_first_bytes_tell() {
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
