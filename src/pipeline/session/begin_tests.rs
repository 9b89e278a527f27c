//! Tests of the queue after a lost connection.

use super::*;
use urlseen_engine::item::batch::Batch;
use urlseen_engine::item::{Findings, Items};
use urlseen_redis::protocol::Cursor;

/// Returns a queue of three batches with two items each, and the heads before and after each
/// batch. Ten items are claimed, and no batch is committed.
fn queue() -> (Queue, Vec<Head>) {
    let mut queue = Queue::new(Head::START, 10);
    let mut heads = vec![Head::START];
    for left in [8, 6, 4] {
        let items: Items = [&b"a"[..], b"b"].into_iter().collect();
        let judged = Batch::new(items.before(left)).judged(Findings::default());
        let batch = judged.sifted().after(queue.next_base());
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
