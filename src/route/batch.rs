//! Batches on their way to the partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use urlseen_core::fingerprint::{Fingerprint, PartitionCount};
use urlseen_engine::item::batch::{Batch, Claimed};
use urlseen_engine::item::{Identity, Items, Reader};

/// Items of the source that were read together.
#[derive(Debug)]
pub(super) struct RoutedBatch {
    batch: Batch<Claimed>,
    /// Number of partitions that have not acknowledged their items.
    missing: AtomicUsize,
    /// Told when no partition is missing.
    done: Arc<Notify>,
}

/// Items of a batch that belong to one partition.
#[derive(Debug)]
pub(super) struct Share {
    batch: Arc<RoutedBatch>,
    indices: Vec<usize>,
}

impl RoutedBatch {
    /// Divides items by their partitions. Returns the batch and the shares of the partitions that
    /// have items. `done` is told when all of them have acknowledged their shares.
    pub(super) fn divide(
        batch: Batch<Claimed>,
        reader: &mut Reader,
        count: PartitionCount,
        done: &Arc<Notify>,
    ) -> (Arc<Self>, Vec<(usize, Share)>) {
        let mut parts = vec![Vec::new(); count.get().into()];
        for (index, item) in batch.items().iter().enumerate() {
            let partition = match reader.read(item).map(|item| item.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => count.of(&fingerprint),
                // The daemon of the partition rejects an item that cannot be read, and counts a
                // dropped one.
                Ok(Identity::Unfiltered | Identity::Dropped(_)) | Err(_) => {
                    count.of(&Fingerprint::Text(item.into()))
                }
            };
            parts[usize::from(partition.number())].push(index);
        }
        let parts: Vec<_> =
            parts.into_iter().enumerate().filter(|(_, indices)| !indices.is_empty()).collect();
        let missing = AtomicUsize::new(parts.len());
        let batch = Arc::new(Self { batch, missing, done: Arc::clone(done) });
        let share = |indices| Share { batch: Arc::clone(&batch), indices };
        let shares = parts.into_iter().map(|(number, part)| (number, share(part))).collect();
        (batch, shares)
    }

    pub(super) fn items(&self) -> &Items {
        self.batch.items()
    }

    /// Returns true if all partitions have acknowledged their items.
    pub(super) fn is_done(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }
}

impl Share {
    pub(super) fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &[u8]> {
        self.indices.iter().map(|&index| self.batch.items().get(index))
    }

    /// Notes that the partition has the items.
    pub(super) fn acknowledge(self) {
        if self.batch.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.batch.done.notify_one();
        }
    }
}
