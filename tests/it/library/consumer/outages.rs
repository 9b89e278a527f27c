//! Lost replies, broken connections, and consumers without a connection.

use std::time::{Duration, Instant};

use redis::Commands;
use urlseen::{Consumer, ConsumerOptions, ErrorKind};

use super::{CONSUMERS, SOURCE, hasty, held, open, open_at, page, pop, prepared, sink, text};
use crate::daemon::{Crawl, stop};
use crate::library::cutting::Cutting;
use crate::util::wait::{SOON, wait_until};

/// After a lost reply, the consumer repeats the pop with its id, and gets the same delivery.
#[test]
fn a_lost_reply_to_a_pop_loses_no_request() {
    let crawl = prepared(Crawl::new(), 3);
    let proxy = Cutting::before(&crawl.server);
    let options = ConsumerOptions { retries: 0, ..ConsumerOptions::default() };
    let consumer = Consumer::open_with(&proxy.url(), SOURCE, options).unwrap();
    // After the first pop, the server knows the scripts. So the lost reply is that of the next pop.
    let first = pop(&consumer);
    proxy.lose_next(1);
    wait_until(SOON, "lost reply to a pop", || match consumer.pop() {
        Ok(popped) => panic!("{popped:?} came although the reply was to be lost"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Redis);
            proxy.to_lose() == 0
        }
    });
    let mut connection = crawl.connection();
    assert_eq!(connection.hlen::<_, usize>(held(consumer.name())).unwrap(), 2);
    let second = pop(&consumer);
    assert_eq!((text(&first), text(&second)), (&*page(0), &*page(1)));
    assert_eq!(connection.hlen::<_, usize>(held(consumer.name())).unwrap(), 2);
    assert!(second.is_held());
}

/// A repeated acknowledgement pushes the links only once.
#[test]
fn a_lost_reply_to_a_finish_pushes_the_links_once() {
    let crawl = prepared(Crawl::new(), 2);
    let proxy = Cutting::before(&crawl.server);
    let consumer = open_at(&proxy.url());
    let (first, second) = (pop(&consumer), pop(&consumer));
    assert!(consumer.finish(&first, [page(10)]).unwrap());
    proxy.lose_next(1);
    // The repeated call finds that the first one was executed.
    assert!(!consumer.finish(&second, [page(11)]).unwrap());
    assert_eq!(proxy.to_lose(), 0);
    let pushed: Vec<String> = crawl.connection().lrange(SOURCE, 0, -1).unwrap();
    assert_eq!(pushed, [page(10), page(11)]);
}

/// Requests of a consumer without a connection go to another consumer. If the first consumer
/// finishes its page late, this pushes no links.
#[test]
fn a_consumer_notices_that_another_consumer_got_its_page() {
    for kind in ["list", "zset"] {
        let crawl = hasty().set(&format!("sink.kind={kind}"));
        let daemon = crawl.start();
        let proxy = Cutting::before(&crawl.server);
        crawl.push(&[page(0)]);
        let (slow, other) = (open_at(&proxy.url()), open(&crawl));
        let delivery = pop(&slow);
        assert!(delivery.is_held());
        proxy.cut();
        let again = pop(&other);
        assert_eq!((text(&again), again.deliveries_before()), (&*page(0), 1));
        proxy.mend();
        wait_until(SOON, "delivery that is known to be lost", || !delivery.is_held());
        assert!(!slow.finish(&delivery, [page(1)]).unwrap());
        assert_eq!(slow.pending().unwrap(), 1);
        assert!(other.finish(&again, [page(1)]).unwrap());
        assert_eq!(text(&pop(&other)), page(1));
        stop(daemon);
    }
}

/// Redis can have a delivery that its consumer does not know, for one of two reasons: Redis
/// executed the pop late, or a failover lost the acknowledgement.
#[test]
fn a_heartbeat_requeues_deliveries_that_are_unknown() {
    let crawl = prepared(hasty(), 0);
    let consumer = open(&crawl);
    let mut connection = crawl.connection();
    let () = connection.hset(held(consumer.name()), "99", "0 0 late").unwrap();
    wait_until(SOON, "requeued request", || sink(&mut connection) == ["late"]);
    assert_eq!(pop(&consumer).deliveries_before(), 0);
}

/// Rule H6: a heartbeat is the time of the server, and grows also after its clock was set back.
#[test]
fn a_heartbeat_grows_after_the_clock_was_set_back() {
    let crawl = prepared(hasty(), 0);
    let consumer = open(&crawl);
    let mut connection = crawl.connection();
    let later: u64 = 1 << 50;
    let () = connection.hset(CONSUMERS, consumer.name(), later).unwrap();
    wait_until(SOON, "a heartbeat", || {
        let beat: u64 = connection.hget(CONSUMERS, consumer.name()).unwrap();
        assert!((later..later + 100).contains(&beat), "{beat}");
        beat > later
    });
}

/// Without Redis, the drop of a consumer still ends after some time.
#[test]
fn a_drop_without_redis_ends_within_its_time_limit() {
    let mut crawl = prepared(Crawl::new(), 1);
    let stop_timeout = Duration::from_millis(100);
    let options = ConsumerOptions { stop_timeout, ..ConsumerOptions::default() };
    let consumer = Consumer::open_with(&crawl.server.url(), SOURCE, options).unwrap();
    let _held = pop(&consumer);
    crawl.server.kill();
    let start = Instant::now();
    drop(consumer);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}
