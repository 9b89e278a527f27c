//! Number of items to read at once.

use urlseen_engine::item::Items;

/// Most items of the first window: their sizes are unknown yet.
const FIRST_WINDOW: usize = 16;

/// Bounds what is read at once, by count and by bytes.
///
/// A list tells the sizes of its items only once they are read, so a window is as many items as
/// fit if they are as large as the largest of late. It begins with few and doubles as long as they
/// turn out to be small. Windows that meet larger items than any before can be larger than asked
/// for, once; they are split before they go on.
#[derive(Debug)]
pub(crate) struct Window {
    items_max: usize,
    bytes_max: usize,
    /// The largest item of late, in bytes.
    item: usize,
    /// True while windows double, as neither bound was met yet.
    is_starting: bool,
    /// True until the first window is read.
    is_blind: bool,
    /// Number of items that are still to be read one by one.
    alone: u64,
}

impl Window {
    /// Makes a window of at most `items_max` items and `bytes_max` bytes.
    pub(crate) fn new(items_max: usize, bytes_max: usize) -> Self {
        let item = (bytes_max / FIRST_WINDOW).max(1);
        Self { items_max, bytes_max, item, is_starting: true, is_blind: true, alone: 0 }
    }

    /// The same, but the first `count` items are read one by one.
    #[must_use]
    pub(crate) fn with_alone(self, count: u64) -> Self {
        Self { alone: count, ..self }
    }

    /// Returns the number of windows to ask for before the first of them is read. It is one while
    /// the sizes of items are unknown, so that large ones are not all in memory at once.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        if self.is_blind { 1 } else { most }
    }

    /// Returns the number of items to ask for next. It is at least one, however large items are.
    pub(crate) fn items(&self) -> u64 {
        if self.alone > 0 {
            return 1;
        }
        (self.bytes_max / self.item).clamp(1, self.items_max) as u64
    }

    /// Learns from what was read, and splits it where it is larger than a batch may be. An item
    /// that is larger all by itself is a batch of one.
    pub(crate) fn split(&mut self, items: Items) -> Vec<Items> {
        self.is_blind = false;
        self.alone = self.alone.saturating_sub(items.len() as u64);
        let largest = items.largest();
        self.is_starting &= self.items() < self.items_max as u64;
        // A large item is remembered for a while: they seldom come alone.
        let faded = self.item - self.item / if self.is_starting { 2 } else { 8 };
        self.is_starting &= largest < faded;
        self.item = largest.max(faded).max(1);
        if items.bytes_len() <= self.bytes_max {
            return vec![items];
        }
        let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
        for (index, item) in items.iter().enumerate() {
            if index > first && bytes + item.len() > self.bytes_max {
                parts.push(items.part(first..index));
                (first, bytes) = (index, 0);
            }
            bytes += item.len();
        }
        parts.push(items.part(first..items.len()));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(sizes: &[usize]) -> Items {
        sizes
            .iter()
            .map(|&size| vec![b'x'; size])
            .collect::<Vec<_>>()
            .iter()
            .map(|i| &i[..])
            .collect()
    }

    #[test]
    fn windows_double_from_few_items_until_a_bound_is_met() {
        let mut window = Window::new(1000, 1 << 20);
        let sizes = |window: &mut Window, item| {
            (0..8).map(|_| (window.items(), window.split(items(&[item]))).0).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&mut window, 10), [16, 32, 64, 128, 256, 512, 1000, 1000]);
        let mut window = Window::new(1000, 1 << 20);
        assert_eq!(window.at_once(8), 1);
        assert_eq!(sizes(&mut window, 1 << 18), [16, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(window.at_once(8), 8);
    }

    #[test]
    fn windows_shrink_at_once_when_items_grow_and_grow_again_slowly() {
        let mut window = Window::new(1000, 1_000_000);
        (0..10).for_each(|_| drop(window.split(items(&[10]))));
        assert_eq!(window.items(), 1000);
        window.split(items(&[10, 100_000, 10]));
        assert_eq!(window.items(), 10);
        window.split(items(&[10]));
        assert_eq!(window.items(), 11);
        (0..100).for_each(|_| drop(window.split(items(&[10]))));
        assert_eq!(window.items(), 1000);
        window.split(items(&[5_000_000]));
        assert_eq!(window.items(), 1);
    }

    #[test]
    fn as_many_items_as_are_told_are_read_one_by_one() {
        let mut window = Window::new(1000, 1 << 20).with_alone(2);
        for expected in [1, 1, 64] {
            assert_eq!(window.items(), expected);
            window.split(items(&[10]));
        }
    }

    #[test]
    fn no_part_is_over_the_bound_but_a_single_item_may_be() {
        let mut window = Window::new(10, 100);
        let parts = window.split(items(&[60, 40, 1, 250, 100, 0]));
        let sizes: Vec<Vec<_>> =
            parts.iter().map(|part| part.iter().map(<[u8]>::len).collect()).collect();
        assert_eq!(sizes, [vec![60, 40], vec![1], vec![250], vec![100, 0]]);
        assert_eq!(window.split(items(&[])).len(), 1);
    }
}
