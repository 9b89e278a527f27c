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
    /// with `\u` and four lower-case digits for all that has no shorter escape, DEL among it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What has been appended, as long as it is short.
    fn written(write: impl Fn(&mut Text)) -> String {
        let mut text = Text::default();
        write(&mut text);
        String::from_utf8(text.pending).unwrap()
    }

    #[test]
    fn json_is_escaped_as_in_python() {
        let escaped =
            written(|text| text.push_json("a\"\\/\u{8}\u{c}\n\r\t\0\u{1f}~\u{7f}é\u{ffff}😀"));
        assert_eq!(escaped, r#"a\"\\/\b\f\n\r\t\u0000\u001f~\u007f\u00e9\uffff\ud83d\ude00"#);
    }

    #[test]
    fn hex_is_lower_case() {
        assert_eq!(written(|text| text.push_hex(&[0, 0x9a, 0xff])), "009aff");
    }

    #[test]
    fn long_texts_have_the_hash_of_their_whole() {
        for length in [0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 20_000] {
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
