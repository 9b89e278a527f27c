//! Bytes of a pickle, from which the machine takes opcodes and their arguments.

use super::PickleError;
use super::value::Span;

/// Bytes of a pickle, and the position in them.
pub(super) struct Code<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Code<'_> {
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, PickleError> {
        let byte = *self.bytes.get(self.at).ok_or(PickleError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let array = self.bytes[self.at..].first_chunk().ok_or(PickleError::Short)?;
        self.at += N;
        Ok(*array)
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<Span, PickleError> {
        if count > self.left() {
            return Err(PickleError::Short);
        }
        let start = self.at;
        self.at += count;
        let place = |at| u32::try_from(at).map_err(|_| PickleError::Short);
        Ok(Span { start: place(start)?, end: place(self.at)? })
    }

    /// Takes an unsigned number of `N` bytes, the least significant byte first.
    #[inline]
    pub(super) fn number<const N: usize>(&mut self) -> Result<usize, PickleError> {
        let mut whole = [0; 8];
        whole[..N].copy_from_slice(&self.array::<N>()?);
        usize::try_from(u64::from_le_bytes(whole)).map_err(|_| PickleError::Short)
    }

    /// Takes a length of `N` bytes, and then as many bytes as the length says.
    #[inline]
    pub(super) fn counted<const N: usize>(&mut self) -> Result<Span, PickleError> {
        let count = self.number::<N>()?;
        self.take(count)
    }

    /// Takes the bytes before the next line feed, and skips the line feed.
    pub(super) fn line(&mut self) -> Result<Span, PickleError> {
        let length = memchr::memchr(b'\n', &self.bytes[self.at..]).ok_or(PickleError::Short)?;
        let line = self.take(length)?;
        self.at += 1;
        Ok(line)
    }
}
