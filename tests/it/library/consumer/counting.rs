//! Counts of the requests of a crawl with several partitions.

use std::sync::Mutex;

use redis::Commands;

use super::partitions::{of_partition, open, open_at, options, prepared};
use super::{SOURCE, page, pop};
use crate::library::listening::listen;
use crate::partitions::key;

#[test]
fn items_that_wait_for_a_router_are_pending() {
    let crawl = prepared(&[]);
    let consumer = open(&crawl, options());
    assert_eq!(consumer.pending().unwrap(), 0);
    let mut connection = crawl.connection();
    let () = connection.rpush(SOURCE, page(0)).unwrap();
    assert_eq!(consumer.pending().unwrap(), 1);
    let () = connection.rename(SOURCE, "urlseen:{demo:discovered}:processing").unwrap();
    assert_eq!(consumer.pending().unwrap(), 1);
}

/// Rule H4 of the protocol. The only request of the crawl is always in the partition that is not
/// being counted. Another consumer moves it immediately before each count.
#[test]
fn a_request_that_moves_between_partitions_during_the_counts_is_pending() {
    let crawl = prepared(&of_partition(0, 1));
    let links: Vec<_> = of_partition(0, 50).into_iter().zip(of_partition(3, 50)).collect();
    let other = open(&crawl, options());
    let state = Mutex::new((links, crawl.connection(), 0));
    let url = listen(&crawl.server, move |words| {
        let (links, connection, at) = &mut *state.lock().unwrap();
        let is_count = words.len() > 4 && words[4].ends_with(b":processing");
        if !is_count || words[3] != key(SOURCE, *at).as_bytes() {
            return;
        }
        let delivery = pop(&other);
        *at = 3 - *at;
        let (first, last) = links.pop().expect("a link");
        assert!(other.finish(&delivery, [if *at == 0 { first } else { last }]).unwrap());
        // The daemon would do this.
        let (source, sink) = (key(SOURCE, *at), key("demo:unseen", *at));
        let left: Option<String> =
            redis::cmd("LMOVE").arg(&[&source, &sink, "LEFT", "RIGHT"]).query(connection).unwrap();
        assert!(left.is_some());
    });
    let counting = open_at(&url, options());
    assert_eq!(counting.pending().unwrap(), 1);
}
