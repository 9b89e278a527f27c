//! Many items in one buffer.

use std::ops::Range;

use bytes::Bytes;

use super::key::NoKey;

/// Sequence of items that stay in the buffer where they were read. An item costs no allocation and
/// no copy.
#[derive(Debug, Default, Clone)]
pub struct Items {
    bytes: Bytes,
    /// Position of each item in `bytes`.
    places: Vec<Range<usize>>,
    /// Position of the key of each item in `bytes`; empty if each item is its own key.
    keys: Vec<Result<Range<usize>, NoKey>>,
    /// Total length of all items.
    len: usize,
    /// Size in bytes of the largest item.
    pub largest: usize,
    /// Number of items that are known to follow this sequence in the source.
    pub left: u64,
}

impl Items {
    /// Makes items of the bytes at `places`, in that order.
    ///
    /// # Panics
    /// A later access to an item panics if the item's place is not within `bytes`.
    pub fn new(bytes: Bytes, places: Vec<Range<usize>>) -> Self {
        let (mut len, mut largest) = (0, 0);
        for place in &places {
            len += place.len();
            largest = largest.max(place.len());
        }
        Self { bytes, places, keys: Vec::new(), len, largest, left: 0 }
    }

    /// Records that `left` more items follow this sequence in the source.
    #[must_use]
    pub fn before(self, left: u64) -> Self {
        Self { left, ..self }
    }

    /// Makes an item of each line of a text, without the line feed. Every line, even the last, ends
    /// in a line feed.
    pub(crate) fn from_lines(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.last().is_none_or(|&last| last == b'\n'));
        let places = lines(&bytes).collect();
        Self::new(bytes.into(), places)
    }

    /// Makes an item of each line, as [`Items::from_lines`]. `key` adds the key of a line to a
    /// buffer.
    pub(crate) fn from_lines_by(
        bytes: Vec<u8>,
        key: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), NoKey>,
    ) -> Self {
        let (places, mut decoded): (Vec<_>, _) = (lines(&bytes).collect(), Vec::new());
        let key = |line: &Range<usize>| {
            let start = decoded.len();
            key(&bytes[line.clone()], &mut decoded).map(|()| start..decoded.len())
        };
        let keys = places.iter().map(key).collect();
        Self::with_keys(bytes, places, &decoded, keys)
    }

    /// Makes items of the bytes at `places`, each with its key at a position in `decoded`.
    pub(crate) fn with_keys(
        mut bytes: Vec<u8>,
        places: Vec<Range<usize>>,
        decoded: &[u8],
        keys: Vec<Result<Range<usize>, NoKey>>,
    ) -> Self {
        let before = bytes.len();
        bytes.extend_from_slice(decoded);
        let moved = |key: Range<usize>| before + key.start..before + key.end;
        let keys = keys.into_iter().map(|key| key.map(moved)).collect();
        Self { keys, ..Self::new(bytes.into(), places) }
    }

    /// Puts the key of each item in place of the item.
    #[must_use]
    pub(crate) fn keys_alone(mut self) -> Self {
        for (place, key) in self.places.iter_mut().zip(&self.keys) {
            key.clone().into_iter().for_each(|key| *place = key);
        }
        self
    }

    /// Returns the number of items in the sequence.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the total length of all items in bytes.
    pub fn bytes_len(&self) -> usize {
        self.len
    }

    /// Returns the item at the position `index`.
    ///
    /// # Panics
    /// Panics if `index` is not below [`Items::len`].
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.places[index].clone()]
    }

    /// Returns the key of the item at the position `index`: the part of it that a reader reads.
    ///
    /// # Errors
    /// Returns the reason if the item has no key.
    #[inline]
    pub fn key(&self, index: usize) -> Result<&[u8], NoKey> {
        match self.keys.get(index) {
            None => Ok(self.get(index)),
            Some(key) => key.clone().map(|key| &self.bytes[key]),
        }
    }

    /// Iterates over all items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.clone()])
    }

    /// Returns the items at `range`, in the same memory.
    ///
    /// # Panics
    /// Panics if `range` is not within `0..`[`Items::len`].
    #[must_use]
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        let keys = self.keys.get(range.clone()).unwrap_or_default().to_vec();
        Self { keys, ..Self::new(self.bytes.clone(), self.places[range].to_vec()) }
    }

    /// Copies the items at `range`, so that they do not keep the whole buffer in memory. Only items
    /// of a crawl are copied, and each of these is its own key.
    ///
    /// # Panics
    /// Panics if `range` is not within `0..`[`Items::len`].
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let items = self.places[range.clone()].iter().map(|place| &self.bytes[place.clone()]);
        Self { left: self.left + (self.len() - range.end) as u64, ..items.collect() }
    }
}

/// Iterates over the positions of lines, without their line feeds.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| std::mem::replace(&mut start, end + 1)..end)
}

impl<'a> FromIterator<&'a [u8]> for Items {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(items: I) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for item in items {
            places.push(bytes.len()..bytes.len() + item.len());
            bytes.extend_from_slice(item);
        }
        Self::new(bytes.into(), places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_as_they_were_put_in() {
        let given: [&[u8]; 4] = [b"a", b"", b"\n\xff", b"bc"];
        let items: Items = given.into_iter().collect();
        assert_eq!(items.iter().collect::<Vec<_>>(), given);
        assert_eq!((items.len(), items.bytes_len()), (4, 5));
    }

    #[test]
    fn lines_are_items_without_their_line_feed() {
        let items = Items::from_lines(b"a\n\nbc\r\n".to_vec());
        assert_eq!(items.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc\r"]);
        assert!(Items::from_lines(Vec::new()).is_empty());
    }

    #[test]
    fn a_part_is_some_of_the_items() {
        let items = Items::from_lines(b"a\nbb\n\nccc\n".to_vec());
        let part = items.part(1..3);
        assert_eq!(part.iter().collect::<Vec<_>>(), [&b"bb"[..], b""]);
        assert_eq!((part.len(), part.bytes_len()), (2, 2));
    }

    #[test]
    fn a_part_keeps_its_place_in_the_source() {
        let items = Items::from_lines(b"a\nbb\n\nccc\n".to_vec());
        let items = items.before(10);
        let part = items.part(1..3);
        assert_eq!((part.left, part.largest), (11, 2));
        assert_eq!(items.largest, 3);
        assert_eq!(items.part(0..4).left, 10);
    }
}
