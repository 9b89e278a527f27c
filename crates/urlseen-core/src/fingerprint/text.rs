//! Text that is hashed for a fingerprint, and its SHA-1.

use sha1::block_api::compress;

use crate::fingerprint::lanes::{self, Lanes, one_of, within};

/// Text that is hashed with SHA-1. A short text is collected, padded in place and hashed in one
/// step. A long text is hashed part by part, so that only one part is in memory.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pending: Vec<u8>,
    /// Number of bytes that were hashed before `pending`, always a multiple of the block size.
    hashed: u64,
    /// State of SHA-1 after the hashed bytes.
    state: [u32; 5],
}

/// Block size of SHA-1 in bytes.
const BLOCK: usize = 64;

/// Initial state of SHA-1 (FIPS 180-4, section 5.3.1).
const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

impl Default for Text {
    fn default() -> Self {
        Self { pending: Vec::with_capacity(Self::PART + 2 * BLOCK), hashed: 0, state: START }
    }
}

impl Text {
    /// Maximum number of bytes that are collected before they are hashed.
    const PART: usize = 4096;

    /// Appends bytes unchanged.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() <= Self::PART {
            return self.pending.extend_from_slice(bytes);
        }
        for part in bytes.chunks(Self::PART) {
            self.make_room(part.len());
            self.pending.extend_from_slice(part);
        }
    }

    /// Makes room for this number of additional bytes. Hashes the pending bytes if the pending and
    /// the additional bytes together would be longer than one part. Bytes after the last whole
    /// block stay pending.
    fn make_room(&mut self, more: usize) {
        if self.pending.len() + more > Self::PART {
            let (blocks, rest) = self.pending.as_chunks::<BLOCK>();
            compress(&mut self.state, blocks);
            let whole = self.pending.len() - rest.len();
            self.hashed += whole as u64;
            self.pending.drain(..whole);
        }
    }

    /// Appends two lower-case hex digits for each byte.
    pub(super) fn push_hex(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(Self::PART / 2) {
            self.make_room(2 * part.len());
            for byte in part {
                self.pending.push(DIGITS[usize::from(byte >> 4)]);
                self.pending.push(DIGITS[usize::from(byte & 15)]);
            }
        }
    }

    /// Appends a text in the form that it has inside a JSON string of Python's `json.dumps` with
    /// default settings. A character that is not printable ASCII becomes `\u` and four lower-case
    /// digits, unless it has a shorter escape.
    pub(super) fn push_json(&mut self, text: &str) {
        if !lanes::any(text.as_bytes(), escaped) {
            return self.push(text.as_bytes());
        }
        for letter in text.chars() {
            match letter {
                '"' => self.push(b"\\\""),
                '\\' => self.push(b"\\\\"),
                '\n' => self.push(b"\\n"),
                '\r' => self.push(b"\\r"),
                '\t' => self.push(b"\\t"),
                '\u{8}' => self.push(b"\\b"),
                '\u{c}' => self.push(b"\\f"),
                ' '..='~' => self.push(&[letter as u8]),
                _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                    let digit = |shift: u16| DIGITS[usize::from(unit >> shift & 15)];
                    self.push(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
                }),
            }
        }
    }

    /// Returns the hash of the text, and empties the text.
    pub(super) fn finish(&mut self) -> [u8; 20] {
        let bits = 8 * (self.hashed + self.pending.len() as u64);
        // Padding: a bit that is 1, zeros up to the end of a block, and the length in bits as the
        // last bytes of this block.
        self.pending.push(0x80);
        let end = (self.pending.len() + size_of_val(&bits)).next_multiple_of(BLOCK);
        self.pending.resize(end - size_of_val(&bits), 0);
        self.pending.extend_from_slice(&bits.to_be_bytes());
        compress(&mut self.state, self.pending.as_chunks().0);
        self.pending.clear();
        self.hashed = 0;
        let mut hash = [0; 20];
        let words = std::mem::replace(&mut self.state, START);
        hash.as_chunks_mut()
            .0
            .iter_mut()
            .zip(words)
            .for_each(|(bytes, word)| *bytes = word.to_be_bytes());
        hash
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Marks the bytes that JSON escapes.
fn escaped(lanes: Lanes) -> Lanes {
    !within(lanes, b' ', b'~') | one_of(lanes, *b"\"\\")
}

#[cfg(test)]
mod tests {
    use sha1::{Digest, Sha1};

    use super::*;

    #[test]
    fn long_texts_are_hashed_as_a_whole() {
        for length in (0..200).chain([2047, 2048, 2049, 4095, 4096, 4097, 20_000]) {
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            let mut text = Text::default();
            for _ in 0..2 {
                text.push(b"<");
                text.push(&bytes);
                text.push_hex(&bytes);
                text.push(b">");
                let hex: Vec<u8> = bytes
                    .iter()
                    .flat_map(|&byte| {
                        [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
                    })
                    .collect();
                let whole = [b"<", &*bytes, &*hex, b">"].concat();
                assert_eq!(text.finish(), <[u8; 20]>::from(Sha1::digest(whole)), "{length}");
            }
        }
    }
}
