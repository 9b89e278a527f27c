//! Batches that are ready for their commit. This process does not know yet if Redis has committed
//! them.

use std::collections::VecDeque;
use std::time::SystemTime;

use urlseen_core::redis::protocol::{CrawlState, Cursor};
use urlseen_core::redis::reject;
use urlseen_core::storage::Head;
use urlseen_engine::item::Unreadable;
use urlseen_engine::item::batch::{Batch, Ready};

/// Batch with everything that its commit needs.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) batch: Batch<Ready>,
    /// Rejects of the batch, as JSON.
    pub(crate) rejects: Vec<Vec<u8>>,
    /// True for a complete batch, and for the last part of a batch that was split.
    pub(crate) is_last: bool,
}

impl Prepared {
    /// Prepares a batch. `is_last` is true for a complete batch, and for the last part of a batch
    /// that was split.
    pub(crate) fn new(batch: Batch<Ready>, is_last: bool) -> Self {
        let now = SystemTime::now();
        let rejects = batch.rejects().map(|(item, reason)| {
            let is_large = matches!(reason, Unreadable::TooLarge { .. });
            let write = if is_large { reject::shortened } else { reject::write };
            write(item, reason, now)
        });
        Self { rejects: rejects.collect(), batch, is_last }
    }

    /// Returns the place in the processing list after the commit.
    fn end(&self) -> Cursor {
        self.batch.items().left()
    }
}

/// Ready batches in the order of their commits, and the position of the crawl before the first
/// batch.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Last batch that is known to be committed.
    pub(crate) head: Head,
    /// Place in the processing list after the commit `head`: the number of items that were claimed
    /// and not committed. A claim changes it while the queue is empty.
    pub(crate) cursor: Cursor,
    /// Queued batches, oldest first. A session adds them with [`Queue::push`].
    pub(crate) batches: VecDeque<Prepared>,
}

/// Result of comparing the queue with the last batch that Redis records.
#[derive(Debug)]
pub(crate) struct Resumed {
    /// Batches that were committed, oldest first.
    pub(crate) committed: Vec<Prepared>,
    /// True if the batches that are still queued no longer match the claimed items, and must be
    /// tested again.
    pub(crate) stale: bool,
}

/// Error: the last batch that Redis records is neither the last known commit nor a queued batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Redis {}, but this run last committed {ours}: either Redis came back with older data, or \
     another program changed the crawl's state. The filter is recovered to the last batch that \
     Redis records",
    theirs.as_ref().map_or_else(
        || "knows nothing of the crawl any more".to_owned(), |head| format!("is at {head}")))]
pub(crate) struct Diverged {
    /// Last batch that Redis records. `None` if Redis does not know the crawl.
    pub(crate) theirs: Option<Head>,
    /// Last batch that this run committed.
    pub(crate) ours: Head,
}

impl Queue {
    /// Makes an empty queue. `head` and `cursor` are those that Redis records.
    pub(crate) fn new(head: Head, cursor: Cursor) -> Self {
        Self { head, cursor, batches: VecDeque::new() }
    }

    /// Returns the position of the source before the batch at `index`, counted from the oldest. If
    /// `index` is the number of batches, returns the position after the last batch.
    pub(crate) fn cursor(&self, index: usize) -> Cursor {
        match index.checked_sub(1) {
            Some(before) => self.batches[before].end(),
            None => self.cursor,
        }
    }

    /// Returns the head that the next batch follows.
    pub(crate) fn next_base(&self) -> Head {
        self.batches.back().map_or(self.head, |last| last.batch.head())
    }

    /// Adds a batch that follows [`Queue::next_base`].
    pub(crate) fn push(&mut self, prepared: Prepared) {
        debug_assert_eq!(prepared.batch.base(), self.next_base());
        self.batches.push_back(prepared);
    }

    /// Removes and returns the oldest batch, which Redis has committed.
    pub(crate) fn committed(&mut self) -> Option<Prepared> {
        let prepared = self.batches.pop_front()?;
        self.head = prepared.batch.head();
        self.cursor = prepared.end();
        Some(prepared)
    }

    /// Drops all batches, and returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        self.batches.drain(..).count()
    }

    /// Compares the queue with the last batch that Redis records, after a connection was lost or
    /// Redis refused a commit. Removes the committed batches from the queue.
    pub(crate) fn resume(&mut self, crawl_state: CrawlState) -> Result<Resumed, Diverged> {
        let diverged = Diverged { theirs: crawl_state.head, ours: self.head };
        let theirs = crawl_state.head.ok_or_else(|| diverged.clone())?;
        let mut heads = self.batches.iter().map(|prepared| prepared.batch.head());
        let committed = match heads.position(|head| head == theirs) {
            Some(index) => index + 1,
            None if theirs == self.head => 0,
            None => return Err(diverged),
        };
        let committed = (0..committed).filter_map(|_| self.committed()).collect();
        let stale = self.cursor != crawl_state.cursor;
        self.cursor = crawl_state.cursor;
        Ok(Resumed { committed, stale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_engine::item::Findings;
    use urlseen_engine::item::Items;

    /// Returns a queue of three batches with two items each, and the heads before and after each
    /// batch. Ten items are claimed, and no batch is committed.
    fn queue() -> (Queue, Vec<Head>) {
        let mut queue = Queue::new(Head::START, 10);
        let mut heads = vec![Head::START];
        for left in [8, 6, 4] {
            let items: Items = [&b"a"[..], b"b"].into_iter().collect();
            let found = Batch::new(items.before(left)).found(Findings::default());
            let batch = found.sifted().after(queue.next_base());
            heads.push(batch.head());
            queue.push(Prepared { batch, rejects: Vec::new(), is_last: true });
        }
        (queue, heads)
    }

    fn crawl_state(head: Option<Head>, cursor: Cursor) -> CrawlState {
        CrawlState { head, filter: None, cursor, unseen: 0 }
    }

    #[test]
    fn resuming_removes_the_batches_that_redis_knows_and_keeps_the_rest() {
        for known in 0..=3 {
            let (mut queue, heads) = queue();
            let processing = 10 - 2 * known as u64;
            let crawl_state = crawl_state(Some(heads[known]), processing);
            let resumed = queue.resume(crawl_state).unwrap();
            assert_eq!((resumed.committed.len(), resumed.stale), (known, false));
            assert_eq!(
                (queue.batches.len(), queue.cursor, queue.head),
                (3 - known, processing, heads[known])
            );
        }
    }

    #[test]
    fn a_changed_list_of_claimed_items_makes_the_rest_stale() {
        let (mut queue, heads) = queue();
        let resumed = queue.resume(crawl_state(Some(heads[1]), 9)).unwrap();
        assert_eq!((resumed.committed.len(), resumed.stale), (1, true));
        assert_eq!(queue.cursor, 9);
    }

    #[test]
    fn an_unknown_position_of_redis_is_an_error() {
        for theirs in [None, Some(Head::START.next()), Some(Head { seq: 7, ..Head::START })] {
            let (mut queue, heads) = queue();
            queue.committed();
            let diverged = queue.resume(crawl_state(theirs, 8)).unwrap_err();
            assert_eq!(diverged, Diverged { theirs, ours: heads[1] });
            // Redis returned to a state before a commit that it had acknowledged.
            assert!(queue.resume(crawl_state(Some(Head::START), 10)).is_err());
        }
    }
}
