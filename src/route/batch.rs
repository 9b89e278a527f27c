//! Batches on their way to the partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use urlseen_core::fingerprint::{Fingerprint, PartitionCount};
use urlseen_engine::item::{Identity, Items, Reader};

use crate::crawl::protocol::Position;

/// Items of the source that were read together.
#[derive(Debug)]
pub(super) struct RoutedBatch {
    pub(super) items: Items,
    /// Position of the first item in the history of the source.
    pub(super) position: Position,
    /// Number of partitions that have not acknowledged their items.
    missing: AtomicUsize,
    /// Told when no partition is missing.
    done: Arc<Notify>,
}

/// Items of a batch that belong to one partition.
#[derive(Debug)]
pub(super) struct Share {
    batch: Arc<RoutedBatch>,
    /// Indices of the items that have a fingerprint.
    filtered: Vec<usize>,
    /// Indices of the other items, with their marks.
    marked: Vec<(usize, String)>,
}

impl RoutedBatch {
    /// Divides items by their partitions. Returns the batch and the shares of the partitions that
    /// have items. `done` is told when all of them have acknowledged their shares.
    pub(super) fn divide(
        items: Items,
        position: Position,
        reader: &mut Reader,
        count: PartitionCount,
        done: &Arc<Notify>,
    ) -> (Arc<Self>, Vec<(usize, Share)>) {
        let mut parts = vec![(Vec::new(), Vec::new()); count.get().into()];
        for (index, item) in items.iter().enumerate() {
            match reader.read(item).map(|item| item.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => {
                    parts[usize::from(count.of(&fingerprint).number())].0.push(index);
                }
                // The daemon of the partition rejects an item that cannot be read, and counts a
                // dropped one.
                Ok(Identity::Unfiltered | Identity::Dropped(_)) | Err(_) => {
                    let partition = count.of(&Fingerprint::Text(item.into()));
                    let mark = position.mark(index, item);
                    parts[usize::from(partition.number())].1.push((index, mark));
                }
            }
        }
        let parts: Vec<_> = parts
            .into_iter()
            .enumerate()
            .filter(|(_, (filtered, marked))| !filtered.is_empty() || !marked.is_empty())
            .collect();
        let missing = AtomicUsize::new(parts.len());
        let batch = Arc::new(Self { items, position, missing, done: Arc::clone(done) });
        let share = |(filtered, marked)| Share { batch: Arc::clone(&batch), filtered, marked };
        let shares = parts.into_iter().map(|(number, part)| (number, share(part))).collect();
        (batch, shares)
    }

    /// Returns true if all partitions have acknowledged their items.
    pub(super) fn is_done(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }
}

impl Share {
    pub(super) fn len(&self) -> u64 {
        (self.filtered.len() + self.marked.len()) as u64
    }

    /// Returns the items that have a fingerprint.
    pub(super) fn filtered(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.filtered.iter().map(|&index| self.batch.items.get(index))
    }

    /// Returns the other items, with their marks.
    pub(super) fn marked(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.marked.iter().map(|(index, mark)| (mark.as_str(), self.batch.items.get(*index)))
    }

    /// Notes that the partition has the items.
    pub(super) fn acknowledge(self) {
        if self.batch.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.batch.done.notify_one();
        }
    }
}
