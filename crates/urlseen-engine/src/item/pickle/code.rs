//! A pickle as a run of bytes that opcodes and what belongs to them are taken off.

use super::PickleError;
use super::value::Span;

/// A pickle, and how far it has run.
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

    pub(super) fn counted_by_one(&mut self) -> Result<Span, PickleError> {
        let count = self.byte()?;
        self.take(count.into())
    }

    pub(super) fn length_of_four(&mut self) -> Result<usize, PickleError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    pub(super) fn counted_by_four(&mut self) -> Result<Span, PickleError> {
        let count = self.length_of_four()?;
        self.take(count)
    }

    pub(super) fn counted_by_eight(&mut self) -> Result<Span, PickleError> {
        let count = u64::from_le_bytes(self.array()?);
        self.take(usize::try_from(count).map_err(|_| PickleError::Short)?)
    }

    /// What stands before the next line feed, which is passed.
    pub(super) fn line(&mut self) -> Result<Span, PickleError> {
        let length = memchr::memchr(b'\n', &self.bytes[self.at..]).ok_or(PickleError::Short)?;
        let line = self.take(length)?;
        self.at += 1;
        Ok(line)
    }
}
