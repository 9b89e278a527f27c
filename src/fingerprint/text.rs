//! The text that is hashed, and its hash.

use sha1::{Digest, Sha1};

/// What of a request is hashed.
pub(super) struct Parts<'a> {
    /// In upper case.
    pub(super) method: &'a str,
    /// As the algorithm wants it: canonical, or as it is.
    pub(super) url: &'a str,
    pub(super) body: &'a [u8],
}

/// A text on its way into SHA-1. Short ones are gathered and hashed at once; of long ones no more
/// than a part is held.
#[derive(Debug, Default)]
pub(super) struct Text {
    pending: Vec<u8>,
    /// What came before `pending`.
    hashed: Option<Sha1>,
}

impl Text {
    /// How much is gathered before it is hashed, in bytes.
    const PART: usize = 4096;

    /// Appends bytes as they are.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() > Self::PART {
            self.hash_pending();
        }
        if bytes.len() > Self::PART {
            self.hashed.get_or_insert_default().update(bytes);
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    /// Appends two lower-case hex digits for each byte.
    pub(super) fn push_hex(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(Self::PART / 2) {
            if self.pending.len() + 2 * part.len() > Self::PART {
                self.hash_pending();
            }
            for byte in part {
                self.pending.push(DIGITS[usize::from(byte >> 4)]);
                self.pending.push(DIGITS[usize::from(byte & 15)]);
            }
        }
    }

    /// Appends the inside of a JSON string as Python's `json.dumps` writes it by default: ASCII,
    /// with `\uXXXX` in lower-case digits for all that has no shorter escape, DEL among it.
    pub(super) fn push_json(&mut self, text: &str) {
        // Without an early end, this is a few vector instructions.
        let plain = text.bytes().fold(true, |plain, byte| plain & is_plain(byte));
        if plain {
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

    fn hash_pending(&mut self) {
        self.hashed.get_or_insert_default().update(&self.pending);
        self.pending.clear();
    }

    /// The hash of all that was appended; the text is empty again.
    pub(super) fn finish(&mut self) -> [u8; 20] {
        let digest = match self.hashed.take() {
            Some(hasher) => hasher.chain_update(&self.pending).finalize(),
            None => Sha1::digest(&self.pending),
        };
        self.pending.clear();
        digest.into()
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Whether JSON has the byte as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}
