//! Detection of the form of an item by its first bytes.

use crate::filter::choice::ItemForm;
use crate::fingerprint::lanes;

/// Byte order mark of UTF-8, which some programs write before text.
pub const MARK: &[u8] = "\u{feff}".as_bytes();

/// First byte of the byte order mark.
const MARK_START: u8 = MARK[0];

/// First byte of pickles of protocol 2 and higher. No character of UTF-8 begins with this byte.
const PICKLE: u8 = 0x80;

impl ItemForm {
    /// Detects the form of an item that is not empty.
    #[inline]
    pub fn detect(bytes: &[u8]) -> Self {
        match bytes[0] {
            b'{' => return Self::Json,
            PICKLE => return Self::Pickle,
            b' ' | b'\t' | b'\n' | b'\r' | MARK_START if is_object(bytes) => return Self::Json,
            _ => {}
        }
        // One digit more than the longest fingerprint has.
        let begin = &bytes[..bytes.len().min(65)];
        let digits =
            lanes::position(begin, |lanes| !lanes::hex_digits(lanes)).unwrap_or(begin.len());
        match (digits, bytes.get(digits)) {
            (32 | 40 | 64, None) => Self::Fingerprint,
            (32 | 40 | 64, Some(b'\t')) => Self::Tab,
            _ => Self::Url,
        }
    }
}

/// Returns true if text begins like a JSON object, with `{`. White space and a byte order mark
/// before the `{` are skipped.
pub fn is_object(text: &[u8]) -> bool {
    unmarked(text).trim_ascii_start().starts_with(b"{")
}

/// Removes a byte order mark before JSON text, because `serde_json` refuses it.
pub fn unmarked(text: &[u8]) -> &[u8] {
    text.trim_ascii_start().strip_prefix(MARK).unwrap_or(text)
}
