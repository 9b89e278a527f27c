//! Numbers of commands that the calls of a consumer cost.

use std::sync::{Arc, Mutex};

use urlseen::Consumer;

use super::partitions::{of_partition, options};
use super::{SOURCE, page, pop};
use crate::daemon::{self, stop};
use crate::library::listening::listen;
use crate::partitions::Crawl;
use crate::util::redis::RedisServer;

/// Time-out with which a consumer sends no heartbeat during a test.
const PATIENT: &str = "held.timeout=1h";

/// Commands that a consumer has sent.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    fn open(&self, server: &RedisServer) -> Consumer {
        let sent = self.clone();
        let url = listen(server, move |words| {
            sent.0.lock().unwrap().push(String::from_utf8_lossy(&words[0]).into_owned());
        });
        Consumer::open_with(&url, SOURCE, options()).unwrap()
    }

    /// Returns the commands since the last call, in the order of their names.
    fn take(&self) -> Vec<String> {
        let mut sent = std::mem::take(&mut *self.0.lock().unwrap());
        sent.sort();
        sent
    }
}

#[test]
fn each_call_in_a_crawl_with_one_partition_costs_one_command() {
    let crawl = daemon::Crawl::new().set(PATIENT);
    let daemon = crawl.start();
    crawl.push(&[page(0), page(1), page(2)]);
    crawl.wait_for_sink(3);
    stop(daemon);
    let sent = Sent::default();
    let consumer = sent.open(&crawl.server);
    // A server gets the text of each script once.
    assert!(consumer.finish(&pop(&consumer), [page(3)]).unwrap());
    assert!(consumer.requeue(&pop(&consumer)).unwrap());
    assert_eq!(consumer.pending().unwrap(), 3);
    sent.take();
    let deliveries = [pop(&consumer), pop(&consumer)];
    assert_eq!(sent.take(), ["EVALSHA", "EVALSHA"]);
    assert!(consumer.pop().unwrap().is_none());
    assert_eq!(sent.take(), ["EVALSHA"]);
    assert!(consumer.finish(&deliveries[0], (0..40).map(page)).unwrap());
    assert_eq!(sent.take(), ["EVALSHA"]);
    assert!(consumer.requeue(&deliveries[1]).unwrap());
    assert_eq!(sent.take(), ["EVALSHA"]);
    consumer.push((0..40).map(page)).unwrap();
    assert_eq!(sent.take(), ["RPUSH"]);
    assert_eq!(consumer.pending().unwrap(), 82);
    assert_eq!(sent.take(), ["EVALSHA"]);
}

#[test]
fn a_call_in_a_crawl_with_several_partitions_asks_only_those_that_it_needs() {
    let crawl = Crawl::new();
    let daemon = crawl.start(&[PATIENT], &[0, 1, 2, 3]);
    crawl.push(&of_partition(1, 3));
    crawl.wait_for_sinks(3);
    stop(daemon);
    let sent = Sent::default();
    let consumer = sent.open(&crawl.server);
    assert!(consumer.finish(&pop(&consumer), of_partition(1, 1)).unwrap());
    consumer.pending().unwrap();
    consumer.pending().unwrap();
    let delivery = pop(&consumer);
    sent.take();
    // The next turn is that of an empty partition. The lengths of the sinks lead to the request.
    let _other = pop(&consumer);
    assert_eq!(sent.take(), ["EVALSHA", "EVALSHA", "LLEN", "LLEN", "LLEN"]);
    assert!(consumer.pop().unwrap().is_none());
    assert_eq!(sent.take(), ["EVALSHA", "LLEN", "LLEN", "LLEN"]);
    let links = [0, 1, 3].map(|number| of_partition(number, 2)).concat();
    assert!(consumer.finish(&delivery, links).unwrap());
    assert_eq!(sent.take(), ["EVALSHA", "RPUSH", "RPUSH"]);
    assert_eq!(consumer.pending().unwrap(), 8);
    assert_eq!(sent.take(), ["EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA", "LLEN", "LLEN"]);
}
