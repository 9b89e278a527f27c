//! Algorithms that compute fingerprints. Each one has a definition: the treatment of the URL, and
//! the text of which the fingerprint is the SHA-1.

use sha1::block_api::compress;

use crate::choice::{Choice, allowed, choose};
use crate::lanes::{self, Lanes, one_of, within};

/// Definition of an algorithm.
pub(super) struct AlgorithmDefinition {
    /// Package and version whose hashes this algorithm reproduces. This text changes whenever the
    /// fingerprints change. Fingerprints stored under another version must not be compared with new
    /// ones.
    version: &'static str,
    /// True if a URL that the crawler sends unchanged is made canonical like any other, although it
    /// never goes through w3lib's `safe_url_string`. Otherwise it is hashed unchanged, with its
    /// fragment.
    pub(super) changes_verbatim: bool,
    /// Writes the text to be hashed.
    pub(super) write: fn(&RequestParts<'_>, &mut Text),
}

/// Algorithm that computes a fingerprint from a request.
///
/// ```
/// use urlseen_fingerprint::Algorithm;
///
/// assert_eq!("scrapy-2.6".parse(), Ok(Algorithm::Scrapy26));
/// assert_eq!(Algorithm::default().name(), "scrapy");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// `scrapy.utils.request.fingerprint` of Scrapy 2.7 and later; the reference is Scrapy 2.19.
    #[default]
    Scrapy,
    /// Fingerprint of Scrapy up to 2.6, and of later versions with
    /// `REQUEST_FINGERPRINTER_IMPLEMENTATION = "2.6"`.
    Scrapy26,
    /// `RFPDupeFilter.request_fingerprint` of scrapy-redis 0.9.
    ScrapyRedis,
}

impl Algorithm {
    /// Returns all algorithms, the default first.
    pub const fn all() -> &'static [Self] {
        &[Self::Scrapy, Self::Scrapy26, Self::ScrapyRedis]
    }

    pub(super) const fn definition(self) -> &'static AlgorithmDefinition {
        match self {
            Self::Scrapy => &SCRAPY,
            Self::Scrapy26 => &SCRAPY_2_6,
            Self::ScrapyRedis => &SCRAPY_REDIS,
        }
    }

    /// Returns the name in configurations and on command lines: `scrapy`, `scrapy-2.6` or
    /// `scrapy-redis`.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, it)| *it == self);
        named.expect("every algorithm has a name").0
    }

    /// Returns the package and version whose hashes this algorithm reproduces.
    pub(super) fn version(self) -> &'static str {
        self.definition().version
    }
}

impl Choice for Algorithm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("scrapy", Self::Scrapy),
        ("scrapy-2.6", Self::Scrapy26),
        ("scrapy-redis", Self::ScrapyRedis),
    ];
}

/// Shows the name of the algorithm.
impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a text that is not the name of a fingerprint algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no fingerprint algorithm `{name}`; use one of {}", allowed::<Algorithm>())]
pub struct UnknownAlgorithmError {
    name: String,
}

impl std::str::FromStr for Algorithm {
    type Err = UnknownAlgorithmError;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithmError> {
        choose(name).map_err(|_| UnknownAlgorithmError { name: name.to_owned() })
    }
}

/// Parts of a request that an algorithm hashes.
pub(super) struct RequestParts<'a> {
    /// HTTP method in upper case.
    pub(super) method: &'a str,
    /// URL as the algorithm needs it: canonical, or unchanged.
    pub(super) url: &'a str,
    pub(super) body: &'a [u8],
}

/// `scrapy`: the JSON that Python's `json.dumps(…, sort_keys=True)` writes. Scrapy hashes headers
/// only if a custom fingerprinter asks for them.
const SCRAPY: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy 2.19",
    changes_verbatim: false,
    write: |request, text| write_json(b"\", \"headers\": {}, \"method\": \"", request, text),
};

/// `scrapy-2.6`: the method, the canonical URL and the body, without delimiters between them.
///
/// Scrapy 2.6 had no `verbatim_url`, so this fingerprint makes the URL of every request canonical.
const SCRAPY_2_6: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy 2.6",
    changes_verbatim: true,
    write: |request, text| {
        text.push(request.method.as_bytes());
        text.push(request.url.as_bytes());
        text.push(request.body);
    },
};

/// `scrapy-redis`: the JSON that Scrapy hashes, but without its headers.
///
/// scrapy-redis itself has no setting `keep_fragments`. If urlseen's `keep_fragments` is true, the
/// canonical URL keeps its fragment.
const SCRAPY_REDIS: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy-redis 0.9",
    changes_verbatim: true,
    write: |request, text| write_json(b"\", \"method\": \"", request, text),
};

/// Writes the JSON. `before_method` is the text between the body and the method.
#[inline]
fn write_json(before_method: &[u8], request: &RequestParts<'_>, text: &mut Text) {
    text.push(b"{\"body\": \"");
    text.push_hex(request.body);
    text.push(before_method);
    text.push_json(request.method);
    text.push(b"\", \"url\": \"");
    text.push_json(request.url);
    text.push(b"\"}");
}

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
