//! Refusals of the library's consumer, and their messages.

use redis::Commands;
use urlseen::{Consumer, ConsumerOptions, ErrorKind};

use super::{RECORD, SOURCE, hasty, open, pop, prepared};
use crate::daemon::Crawl;
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

#[test]
fn a_source_without_a_crawl_is_refused() {
    let server = RedisServer::start();
    let error = Consumer::open(&server.url(), "other:discovered").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoCrawl);
    let text = error.to_string();
    assert!(text.contains("urlseen:{other:discovered}:crawl"), "{text}");
    assert!(text.contains("Start urlseen run"), "{text}");
}

/// Producers and consumers check the crawl record in Redis.
#[test]
fn a_record_of_another_protocol_is_refused() {
    let crawl = prepared(hasty(), 1);
    let mut connection = crawl.connection();
    let consumer = open(&crawl);
    let () = connection.hset(RECORD, "protocol", "3").unwrap();
    let error = Consumer::open(&crawl.server.url(), SOURCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert!(error.to_string().contains("protocol \"3\""), "{error}");
    // A running consumer reads the crawl record with each heartbeat.
    wait_until(SOON, "refusal", || match consumer.pop() {
        Ok(delivery) => {
            drop(delivery.map(|delivery| consumer.requeue(&delivery)));
            false
        }
        Err(error) => error.kind() == ErrorKind::Mismatch,
    });
    let () = connection.hset(RECORD, "protocol", "2").unwrap();
    wait_until(SOON, "delivery", || consumer.pop().is_ok());
}

#[test]
fn a_damaged_record_is_refused_with_the_name_of_the_field() {
    let crawl = prepared(Crawl::new(), 0);
    let mut connection = crawl.connection();
    let () = connection.hset(RECORD, "sink_kind", "stream").unwrap();
    let error = Consumer::open(&crawl.server.url(), SOURCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert!(error.to_string().contains("sink_kind is \"stream\""), "{error}");
    let () = connection.hdel(RECORD, "sink_kind").unwrap();
    let error = Consumer::open(&crawl.server.url(), SOURCE).unwrap_err();
    assert!(error.to_string().contains("lacks the field sink_kind"), "{error}");
}

#[test]
fn the_bytes_of_a_push_are_bounded() {
    let crawl = prepared(Crawl::new(), 1);
    let options = ConsumerOptions { max_push_bytes: 40, ..ConsumerOptions::default() };
    let consumer = Consumer::open_with(&crawl.server.url(), SOURCE, options).unwrap();
    let delivery = pop(&consumer);
    let large = "x".repeat(21);
    let error = consumer.finish(&delivery, [&large, &large]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(consumer.push(["x".repeat(41)]).unwrap_err().kind(), ErrorKind::Limit);
    let mut connection = crawl.connection();
    assert_eq!(connection.llen::<_, usize>(SOURCE).unwrap(), 0);
    // Unlike `finish`, `push` may divide its items into several commands.
    consumer.push([&large, &large]).unwrap();
    assert!(consumer.finish(&delivery, [&large]).unwrap());
    assert_eq!(connection.llen::<_, usize>(SOURCE).unwrap(), 3);
}

#[test]
fn only_the_consumer_that_popped_a_delivery_can_end_it() {
    let crawl = prepared(Crawl::new(), 1);
    let (one, other) = (open(&crawl), open(&crawl));
    let delivery = pop(&one);
    for error in [
        other.finish(&delivery, [""; 0]).unwrap_err(),
        other.reject(&delivery, "").unwrap_err(),
        other.requeue(&delivery).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains(one.name()), "{error}");
    }
    assert!(delivery.is_held());
}

#[test]
fn no_error_shows_the_password() {
    let crawl = prepared(Crawl::new(), 0);
    let url = crawl.server.url_as("default", "geheim");
    let error = Consumer::open(&url, "other:discovered").unwrap_err();
    assert!(!format!("{error:?} {error}").contains("geheim"));
    let consumer = Consumer::open(&url, SOURCE).unwrap();
    assert!(!format!("{consumer:?}").contains("geheim"));
}
