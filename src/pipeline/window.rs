//! Window: a number of items that the daemon reads from the source together.

use crate::config;
use urlseen_engine::item::Items;

/// Maximum number of items of the first window. The window is small, because the sizes of its items
/// are unknown.
const FIRST_WINDOW: usize = 16;

/// Limits the items that are read together, by count and by bytes.
///
/// The sizes of a list's items are known only after the items are read. So a window has only as
/// many items as would fit if each were as large as the largest recent item. The first window is
/// small, and windows double as long as the items are small. If items are larger than all recent
/// ones, a window can exceed the limit in bytes. Then it is split into several batches.
#[derive(Debug)]
pub(crate) struct Window {
    items_max: usize,
    bytes_max: usize,
    /// Size of the largest recent item, in bytes.
    item: usize,
    /// True while windows double, because no window has reached a limit yet.
    is_starting: bool,
    /// True until the first window is read.
    is_blind: bool,
}

impl Window {
    /// Makes a window of at most `items_max` items and `bytes_max` bytes.
    fn new(items_max: usize, bytes_max: usize) -> Self {
        let item = (bytes_max / FIRST_WINDOW).max(1);
        Self { items_max, bytes_max, item, is_starting: true, is_blind: true }
    }

    /// Makes the configured window, of at most `items_max` items and `bytes_max` bytes.
    pub(crate) fn configured(source: &config::Source, items_max: usize, bytes_max: usize) -> Self {
        Self::new(source.batch.min(items_max), source.batch_bytes.min(bytes_max))
    }

    /// Returns the number of windows to request before the first of them is read. While the sizes
    /// of items are unknown, the number is one, so that at most one window of large items is in
    /// memory.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        if self.is_blind { 1 } else { most }
    }

    /// Returns the number of items to request next. It is at least one, even if a single item
    /// exceeds the limit in bytes.
    pub(crate) fn items(&self) -> u64 {
        (self.bytes_max / self.item).clamp(1, self.items_max) as u64
    }

    /// Adapts to the sizes of the items that were read. Splits the items if they exceed the limit
    /// in bytes. An item that exceeds this limit alone becomes a batch of one item.
    pub(crate) fn split(&mut self, items: Items) -> Vec<Items> {
        self.is_blind = false;
        let largest = items.largest();
        self.is_starting &= self.items() < self.items_max as u64;
        // The window grows slowly again after a large item, because large items seldom come alone.
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
    fn windows_start_small_and_double_until_they_reach_a_limit() {
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
    fn a_part_exceeds_the_limit_only_if_it_is_a_single_item() {
        let mut window = Window::new(10, 100);
        let parts = window.split(items(&[60, 40, 1, 250, 100, 0]));
        let sizes: Vec<Vec<_>> =
            parts.iter().map(|part| part.iter().map(<[u8]>::len).collect()).collect();
        assert_eq!(sizes, [vec![60, 40], vec![1], vec![250], vec![100, 0]]);
        assert_eq!(window.split(items(&[])).len(), 1);
    }
}
