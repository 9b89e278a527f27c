//! Fingerprint of a request: a digest or a plain-text key.

use super::hex;

/// Identity of a request. A crawler passes the fingerprint with the request, or a
/// [`Fingerprinter`](super::Fingerprinter) computes it from the request.
///
/// Crawlers write fingerprints as the hex digits of a digest. Scrapy's SHA-1 has 40 digits; other
/// digests have 32 or 64. A fingerprint stores such a digest as raw bytes. Any other text is a
/// plain-text key, which is stored unchanged.
///
/// ```
/// use urlseen_core::fingerprint::Fingerprint;
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
            40 => hex::decode(text).map(Self::Raw20),
            32 => hex::decode(text).map(Self::Raw16),
            64 => hex::decode(text).map(Self::Raw32),
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
impl From<&[u8]> for Fingerprint {
    fn from(text: &[u8]) -> Self {
        Self::from_text(text)
    }
}

/// Reads the key with [`Fingerprint::from_text`].
impl From<&str> for Fingerprint {
    fn from(text: &str) -> Self {
        Self::from_text(text.as_bytes())
    }
}

/// Reads the key with [`Fingerprint::from_text`].
impl From<String> for Fingerprint {
    fn from(text: String) -> Self {
        Self::from_text(text.as_bytes())
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
}
