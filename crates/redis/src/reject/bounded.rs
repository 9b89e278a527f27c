//! Buffer for text with a maximum length.

use std::io;

/// Number of bytes that a text derived from an item may have beside twice the size of the item.
/// They have room for the longest reason of a reject.
pub(crate) const BESIDE: usize = 16 << 10;

/// Returns the maximum size, in bytes, of a text that urlseen derives from an item with `len`
/// bytes. Such a text is the reject of the item, or the item in another form. The limit is needed
/// because an escape turns one byte into six, and a pickle can repeat values.
pub fn most_made(len: usize) -> usize {
    len.saturating_mul(2).saturating_add(BESIDE)
}

/// Byte buffer with a maximum length.
#[derive(Debug)]
pub struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

/// Error for text that would exceed its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Bounded {
    /// Creates an empty buffer for at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Reserves memory for `bytes` bytes, or for the maximum length if that is less.
    #[must_use]
    pub fn with_room(mut self, bytes: usize) -> Self {
        self.bytes.reserve(bytes.min(self.most));
        self
    }

    /// Appends all bytes, or none if the bound would be exceeded.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if bytes.len() > self.most - self.bytes.len() {
            return Err(TooLong);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends a value as JSON.
    pub fn push_json<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TooLong> {
        // Only `push` can fail, because the values are text, numbers and structs of them.
        serde_json::to_writer(self, value).map_err(|_| TooLong)
    }

    /// Returns the bytes of the finished text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(|TooLong| io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_longer_than_its_bound() {
        let mut text = Bounded::new(10).with_room(1 << 40);
        text.push(b"1234").unwrap();
        text.push_json("ab").unwrap();
        assert_eq!(text.push(b"123"), Err(TooLong));
        text.push(b"12").unwrap();
        assert_eq!(text.push_json("\u{1}"), Err(TooLong));
        assert_eq!(text.into_bytes(), b"1234\"ab\"12");
    }
}
