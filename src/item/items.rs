//! Many items, one after the other in one buffer.

/// A run of items, kept as slices of one buffer so that a batch costs two allocations, not one an
/// item.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Items {
    bytes: Vec<u8>,
    /// Where each item ends in `bytes`.
    ends: Vec<usize>,
    /// Bytes between the end of an item and the start of the next: 0, or 1 where `bytes` are lines.
    gap: usize,
}

impl Items {
    /// Room for `count` items of `bytes` in all.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count), gap: 0 }
    }

    /// Takes over text whose every line, the last one too, ends in a line feed; an item is a line
    /// without it.
    pub fn from_lines(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.last().is_none_or(|&last| last == b'\n'));
        let ends = memchr::memchr_iter(b'\n', &bytes).collect();
        Self { bytes, ends, gap: 1 }
    }

    /// Copies `item` in behind the others.
    pub fn push(&mut self, item: &[u8]) {
        debug_assert_eq!(self.gap, 0, "lines are taken over whole");
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The length of all items together, in bytes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// The item at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Items::len`].
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] + self.gap };
        &self.bytes[start..self.ends[index]]
    }

    /// All items, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl<'a> FromIterator<&'a [u8]> for Items {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(items: I) -> Self {
        let mut all = Self::default();
        items.into_iter().for_each(|item| all.push(item));
        all
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
}
