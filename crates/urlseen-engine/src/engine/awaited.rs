//! Batches that one owner will judge, with the parts that have arrived.

use std::collections::VecDeque;
use std::sync::Arc;

use super::owner::{KeyHashes, Readings};
use super::progress::Progress;

/// Batches that an owner has not judged. Each part of a batch arrives from the owner that has read
/// that part. Batches are judged in the order of their numbers, each after all its parts have
/// arrived.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Number of the batch to be judged next.
    next: u64,
    /// Batches from number `next` on; `None` for a batch of which no part has arrived.
    batches: VecDeque<Option<Partial>>,
}

/// Batch of which some parts have arrived.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) progress: Arc<Progress>,
    /// Keys to judge, by part.
    pub(super) key_hashes: Vec<Option<KeyHashes>>,
    /// Results of the parts that this owner has read.
    pub(super) readings: Vec<(usize, Readings)>,
}

impl Awaited {
    /// Returns the entry of a batch of which a part has arrived. The first part creates the entry.
    pub(super) fn batch(&mut self, progress: Arc<Progress>) -> &mut Partial {
        let place = progress.number.checked_sub(self.next).and_then(|at| usize::try_from(at).ok());
        let place = place.expect("a batch is judged after all its parts have arrived");
        if self.batches.len() <= place {
            self.batches.resize_with(place + 1, || None);
        }
        self.batches[place].get_or_insert_with(|| Partial {
            key_hashes: std::iter::repeat_with(|| None).take(progress.parts).collect(),
            readings: Vec::new(),
            progress,
        })
    }

    /// Removes and returns the batch to judge next, once all its parts have arrived.
    pub(super) fn next_whole(&mut self) -> Option<Partial> {
        let is_whole = |batch: &mut Option<Partial>| {
            batch.as_ref().is_some_and(|batch| batch.key_hashes.iter().all(Option::is_some))
        };
        let whole = self.batches.pop_front_if(is_whole)?;
        self.next += 1;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Items;
    use crate::item::batch::Batch;

    /// Makes a batch of two parts.
    fn progress(number: u64) -> Arc<Progress> {
        Arc::new(Progress::new(number, Batch::new(Items::default()), 2, 1, false))
    }

    #[test]
    fn batches_are_judged_in_order_after_all_their_parts_arrived() {
        let mut awaited = Awaited::default();
        let batches = [0, 1, 2].map(progress);
        let mut add = |number: usize, part: usize| -> Vec<u64> {
            let batch = awaited.batch(Arc::clone(&batches[number]));
            batch.key_hashes[part] = Some(KeyHashes::default());
            let whole = std::iter::from_fn(|| awaited.next_whole());
            whole.map(|batch| batch.progress.number).collect()
        };
        assert!(add(2, 0).is_empty());
        assert!(add(1, 1).is_empty());
        assert!(add(1, 0).is_empty(), "the batch before is missing");
        assert!(add(0, 0).is_empty());
        assert_eq!(add(0, 1), [0, 1]);
        assert_eq!(add(2, 1), [2]);
    }
}
