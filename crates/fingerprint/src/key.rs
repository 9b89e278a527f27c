//! Fingerprint of a request: a digest or a plain-text key.

use wide::{i16x8, u8x16};

use super::lanes::{Lanes, hex_digits, within};

/// Identity of a request. A crawler passes the fingerprint with the request, or a
/// [`Fingerprinter`](super::Fingerprinter) computes it from the request.
///
/// Crawlers write fingerprints as the hex digits of a digest. Scrapy's SHA-1 has 40 digits; other
/// digests have 32 or 64. A fingerprint stores such a digest as raw bytes. Any other text is a
/// plain-text key, which is stored unchanged.
///
/// ```
/// use urlseen_fingerprint::Fingerprint;
///
/// let digest = Fingerprint::from("0123456789ABCDEF0123456789abcdef");
/// assert_eq!(digest.to_string(), "0123456789abcdef0123456789abcdef");
/// assert_eq!(digest.as_bytes().len(), 16);
/// assert_eq!(Fingerprint::from("page 7").as_bytes(), b"page 7");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Fingerprint {
    /// Digest of 16 raw bytes, shown as 32 hex digits.
    Raw16([u8; 16]),
    /// Digest of 20 raw bytes, shown as 40 hex digits. Scrapy computes such digests.
    Raw20([u8; 20]),
    /// Digest of 32 raw bytes, shown as 64 hex digits.
    Raw32([u8; 32]),
    /// Plain-text key, unchanged.
    Text(Box<[u8]>),
}

impl Fingerprint {
    /// Reads a key from its text. 32, 40 or 64 hex digits of either case become a digest. Any other
    /// text becomes a plain-text key.
    #[inline]
    pub fn from_text(text: &[u8]) -> Self {
        Self::from_hex(text).unwrap_or_else(|| Self::Text(text.into()))
    }

    /// Reads a digest from 32, 40 or 64 hex digits of either case. Returns `None` for any other
    /// text.
    #[inline]
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        match text.len() {
            40 => decode(text).map(Self::Raw20),
            32 => decode(text).map(Self::Raw16),
            64 => decode(text).map(Self::Raw32),
            _ => None,
        }
    }

    /// Makes a digest from its 16, 20 or 32 raw bytes. Returns `None` for any other length.
    #[inline]
    pub fn from_raw(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            20 => bytes.try_into().ok().map(Self::Raw20),
            16 => bytes.try_into().ok().map(Self::Raw16),
            32 => bytes.try_into().ok().map(Self::Raw32),
            _ => None,
        }
    }

    /// Returns the bytes that a filter hashes: the raw bytes of a digest, or plain text unchanged.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Raw16(raw) => raw,
            Self::Raw20(raw) => raw,
            Self::Raw32(raw) => raw,
            Self::Text(text) => text,
        }
    }
}

impl Fingerprint {
    /// Returns the text that crawlers exchange: the lower-case hex digits of a digest, or plain
    /// text unchanged. `room` is working memory for the digits.
    pub fn text<'a>(&'a self, room: &'a mut [u8; 64]) -> &'a [u8] {
        if let Self::Text(text) = self {
            return text;
        }
        let bytes = self.as_bytes();
        for (pair, byte) in room.chunks_exact_mut(2).zip(bytes) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        &room[..2 * bytes.len()]
    }
}

/// Reads the key with [`Fingerprint::from_text`].
impl<T: AsRef<[u8]>> From<T> for Fingerprint {
    fn from(text: T) -> Self {
        Self::from_text(text.as_ref())
    }
}

impl From<&Self> for Fingerprint {
    fn from(fingerprint: &Self) -> Self {
        fingerprint.clone()
    }
}

/// Shows [`Fingerprint::text`]. Bytes that are not UTF-8 are shown as U+FFFD.
impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.text(&mut [0; 64])))
    }
}

/// Number of bytes that are decoded at once, from two hex digits for each byte.
const BYTES: usize = 16;

/// Decodes hex digits, two for each byte, into `N` bytes. `N` is at least 16. Returns `None` if a
/// character is not a hex digit.
#[inline]
fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    debug_assert_eq!(text.len(), 2 * N);
    let mut raw = [0; N];
    let (whole, rest) = raw.as_chunks_mut();
    for (bytes, digits) in whole.iter_mut().zip(text.as_chunks().0) {
        *bytes = decode_block(digits)?;
    }
    if !rest.is_empty() {
        // The last block overlaps the one before it, so some digits are decoded twice.
        let last = decode_block(text.last_chunk()?)?;
        rest.copy_from_slice(&last[BYTES - rest.len()..]);
    }
    Some(raw)
}

/// Decodes 32 hex digits into 16 bytes.
#[inline]
fn decode_block(digits: &[u8; 2 * BYTES]) -> Option<[u8; BYTES]> {
    let [first, second] = bytemuck::cast::<_, [Lanes; 2]>(*digits);
    if !(hex_digits(first) & hex_digits(second)).all() {
        return None;
    }
    Some(u8x16::narrow_i16x8(joined(first), joined(second)).to_array())
}

/// Joins sixteen hex digits into eight bytes.
#[inline]
fn joined(digits: Lanes) -> i16x8 {
    // The low four bits of the digit `0` are 0. Those of the letters `A` and `a` are 1, so a letter
    // needs 9 more.
    let nine_for_letters = within(digits, b'A', b'f') & Lanes::splat(9);
    let values = (digits & Lanes::splat(0x0f)) + nine_for_letters;
    // The low byte of each pair holds the first digit, whose value becomes the high half of the
    // result.
    let pairs = i16x8::new(bytemuck::cast::<_, [i16; 8]>(values).map(i16::from_le));
    (pairs << 4 | pairs >> 8) & i16x8::splat(0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_of_three_lengths_and_either_case_become_raw_bytes() {
        for digits in [32, 40, 64] {
            let lower = "0f".repeat(digits / 2);
            let read = Fingerprint::from_text(lower.as_bytes());
            assert_eq!(read.as_bytes(), vec![15; digits / 2]);
            assert_eq!(read.to_string(), lower);
            assert_eq!(read, Fingerprint::from_text(lower.to_uppercase().as_bytes()));
        }
    }

    #[test]
    fn raw_bytes_equal_their_decoded_hex_digits() {
        for length in 0..70 {
            let raw = vec![0xab; length];
            let read = Fingerprint::from_raw(&raw);
            assert_eq!(read, Fingerprint::from_hex("ab".repeat(length).as_bytes()), "{length}");
        }
    }

    #[test]
    fn any_other_text_becomes_a_plain_text_key() {
        for text in ["", "a", &"0".repeat(39), &"0".repeat(41), &format!("{}g", "0".repeat(39))] {
            assert_eq!(
                Fingerprint::from_text(text.as_bytes()),
                Fingerprint::Text(text.as_bytes().into())
            );
            assert_eq!(Fingerprint::from_hex(text.as_bytes()), None);
        }
    }

    #[test]
    fn every_pair_of_characters_is_read_at_every_place() {
        for high in 0..=255u8 {
            for low in 0..=255u8 {
                let value = std::str::from_utf8(&[high, low])
                    .ok()
                    .filter(|pair| !pair.starts_with('+'))
                    .and_then(|pair| u8::from_str_radix(pair, 16).ok());
                for place in 0..20 {
                    let mut text = *b"0123456789abcdefFEDCBA98765432100f1e2d3c";
                    text[2 * place] = high;
                    text[2 * place + 1] = low;
                    assert_eq!(decode::<20>(&text).map(|raw| raw[place]), value, "{high} {low}");
                }
            }
        }
    }

    #[test]
    fn digests_of_all_lengths_are_decoded_completely() {
        let text = b"00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
        let raw: Vec<u8> = (0..16).chain(0..16).map(|digit| digit * 0x11).collect();
        assert_eq!(decode::<16>(&text[..32]).map(Vec::from).as_deref(), Some(&raw[..16]));
        assert_eq!(decode::<20>(&text[..40]).map(Vec::from).as_deref(), Some(&raw[..20]));
        assert_eq!(decode::<32>(text).map(Vec::from).as_deref(), Some(&raw[..]));
    }
}
