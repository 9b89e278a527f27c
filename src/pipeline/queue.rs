//! The batches that are ready and not known to be committed yet.

use std::collections::VecDeque;
use std::time::SystemTime;

use crate::crawl::protocol::{Cursor, Protocol, Rejects, Standing};
use urlseen_core::redis::reject::bounded::most_made;
use urlseen_core::redis::reject::{self, Written};
use urlseen_core::storage::Head;
use urlseen_engine::item::batch::{Batch, Ready};

/// A batch ready to be committed.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The batch.
    pub(crate) batch: Batch<Ready>,
    /// Its rejects.
    pub(crate) rejects: Rejects,
    /// Where the source stands once it is committed.
    pub(crate) end: Cursor,
    /// Whether it is the last part of what was judged together.
    pub(crate) is_last: bool,
}

impl Prepared {
    /// A batch, and whether it is the last part of what was judged together.
    pub(crate) fn new(protocol: &Protocol, batch: Batch<Ready>, is_last: bool) -> Self {
        let (rejects, end) = (rejects(protocol, &batch), protocol.end(batch.items()));
        Self { batch, rejects, end, is_last }
    }

    /// Lengths of all that its commit hands to Redis of an item.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.batch.onward().chain(self.rejects.iter()).map(<[u8]>::len)
    }
}

/// Ready batches in the order of their commits, and where the crawl stood before the first.
#[derive(Debug)]
pub(crate) struct Queue {
    head: Head,
    /// Where the source stands as of `head`.
    cursor: Cursor,
    batches: VecDeque<Prepared>,
}

/// What Redis knows of the queued batches.
#[derive(Debug)]
pub(crate) struct Settled {
    /// The batches that were committed, oldest first.
    pub(crate) committed: Vec<Prepared>,
    /// Whether the others no longer fit what is claimed, and so are to be judged again.
    pub(crate) stale: bool,
}

/// Redis stands where this run has never been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Redis {}, this run last committed {ours}: either Redis came back with older data, or another \
     program changed the crawl's state. The filter is recovered to where Redis stands",
    theirs.as_ref().map_or_else(
        || "knows nothing of the crawl any more".to_owned(), |head| format!("is at {head}")))]
pub(crate) struct Diverged {
    /// Where Redis stands.
    pub(crate) theirs: Option<Head>,
    /// Where this run stands.
    pub(crate) ours: Head,
}

impl Queue {
    /// Nothing queued, at the place where Redis stands.
    pub(crate) fn new(head: Head, cursor: Cursor) -> Self {
        Self { head, cursor, batches: VecDeque::new() }
    }

    /// The last batch known to be committed.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// How many batches are queued.
    pub(crate) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// How many items are claimed as of the last commit known.
    pub(crate) fn processing(&self) -> u64 {
        self.cursor.left
    }

    /// Where the source stands before the batch at `index` from the oldest, and after the last.
    pub(crate) fn cursor(&self, index: usize) -> Cursor {
        match index.checked_sub(1) {
            Some(before) => self.batches[before].end,
            None => self.cursor,
        }
    }

    /// How many items the queued batches have.
    pub(crate) fn items(&self) -> u64 {
        self.batches.iter().map(|prepared| prepared.batch.items().len() as u64).sum()
    }

    /// The head that the next batch follows.
    pub(crate) fn next_base(&self) -> Head {
        self.batches.back().map_or(self.head, |last| last.batch.head())
    }

    /// Adds a batch that follows [`Queue::next_base`].
    pub(crate) fn push(&mut self, prepared: Prepared) {
        debug_assert_eq!(prepared.batch.base(), self.next_base());
        self.batches.push_back(prepared);
    }

    /// The batch at `index` from the oldest.
    pub(crate) fn get(&self, index: usize) -> Option<&Prepared> {
        self.batches.get(index)
    }

    /// All batches, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Prepared> {
        self.batches.iter()
    }

    /// The oldest batch, which is committed.
    pub(crate) fn committed(&mut self) -> Option<Prepared> {
        let prepared = self.batches.pop_front()?;
        self.head = prepared.batch.head();
        self.cursor = prepared.end;
        Some(prepared)
    }

    /// Items after this cursor are claimed, now that nothing is queued.
    pub(crate) fn claimed(&mut self, cursor: Cursor) {
        self.cursor = cursor;
    }

    /// Drops all batches; answers how many.
    pub(crate) fn clear(&mut self) -> usize {
        self.batches.drain(..).count()
    }

    /// Holds the queue to where Redis stands, after a connection was lost or a commit refused.
    pub(crate) fn settle(&mut self, standing: Standing) -> Result<Settled, Diverged> {
        let diverged = Diverged { theirs: standing.head, ours: self.head };
        let theirs = standing.head.ok_or_else(|| diverged.clone())?;
        let mut heads = self.batches.iter().map(|prepared| prepared.batch.head());
        let committed = match heads.position(|head| head == theirs) {
            Some(index) => index + 1,
            None if theirs == self.head => 0,
            None => return Err(diverged),
        };
        let committed = (0..committed).filter_map(|_| self.committed()).collect();
        let stale = self.cursor.place != standing.cursor.place;
        if stale {
            self.cursor = standing.cursor;
        }
        Ok(Settled { committed, stale })
    }
}

/// What is kept of the items of a batch that could not be read.
fn rejects(protocol: &Protocol, batch: &Batch<Ready>) -> Rejects {
    let now = SystemTime::now();
    let mut rejects = Rejects::default();
    for (place, (item, reason)) in batch.rejected_at().zip(batch.rejects()) {
        let most = most_made(item.len()).min(batch.most());
        let reason = protocol.explain(reason, batch.items(), place);
        let Written { json, is_oversize } = reject::write(item, &reason, now, most);
        if is_oversize {
            rejects.oversize.push((place, json));
        } else {
            rejects.whole.push(json);
        }
    }
    rejects
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_engine::item::Items;
    use urlseen_engine::item::batch::Findings;

    /// A queue of three batches of two items, at the start of a crawl with ten items claimed.
    fn queue() -> (Queue, Vec<Head>) {
        let mut queue = Queue::new(Head::START, cursor(10));
        let mut heads = vec![Head::START];
        for left in [8, 6, 4] {
            let items: Items = [&b"a"[..], b"b"].into_iter().collect();
            let found = Batch::new(items).found(Findings::default());
            let batch = found.sifted().after(queue.next_base());
            heads.push(batch.head());
            let (rejects, end) = (Rejects::default(), cursor(left));
            queue.push(Prepared { batch, rejects, end, is_last: true });
        }
        (queue, heads)
    }

    fn cursor(left: u64) -> Cursor {
        Cursor { place: left.into(), left }
    }

    fn standing(head: Option<Head>, left: u64) -> Standing {
        Standing { head, filter: None, cursor: cursor(left), unseen: 0 }
    }

    #[test]
    fn settling_commits_what_redis_knows_and_keeps_the_rest() {
        for known in 0..=3 {
            let (mut queue, heads) = queue();
            let processing = 10 - 2 * known as u64;
            let standing = standing(Some(heads[known]), processing);
            let settled = queue.settle(standing).unwrap();
            assert_eq!((settled.committed.len(), settled.stale), (known, false));
            assert_eq!(
                (queue.batches(), queue.processing(), queue.head),
                (3 - known, processing, heads[known])
            );
        }
    }

    #[test]
    fn a_changed_list_of_claimed_items_makes_the_rest_stale() {
        let (mut queue, heads) = queue();
        let settled = queue.settle(standing(Some(heads[1]), 9)).unwrap();
        assert_eq!((settled.committed.len(), settled.stale), (1, true));
        assert_eq!(queue.processing(), 9);
    }

    #[test]
    fn another_history_is_told() {
        for theirs in [None, Some(Head::START.next()), Some(Head { seq: 7, ..Head::START })] {
            let (mut queue, heads) = queue();
            queue.committed();
            let diverged = queue.settle(standing(theirs, 8)).unwrap_err();
            assert_eq!(diverged, Diverged { theirs, ours: heads[1] });
            // Redis went back behind what it had acknowledged.
            assert!(queue.settle(standing(Some(Head::START), 10)).is_err());
        }
    }
}
