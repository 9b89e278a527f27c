//! The library's consumer of held requests, with a real server and a real daemon.

mod clusters;
mod costs;
mod counting;
mod outages;
mod partitions;
mod refusals;

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;

use redis::{Commands, Connection};
use serde_json::Value;
use urlseen::{Consumer, ConsumerOptions, Delivery};

use crate::daemon::{Crawl, stop};
use crate::util::wait::{SOON, wait_until};

const SOURCE: &str = "demo:discovered";
const SINK: &str = "demo:unseen";
const REJECTED: &str = "demo:rejected";
const RECORD: &str = "urlseen:{demo:discovered}:crawl";
const CONSUMERS: &str = "urlseen:{demo:discovered}:consumers";
/// Number of pages of the crawl in these tests.
const PAGES: usize = 100;

fn held(name: &str) -> String {
    format!("urlseen:{{demo:discovered}}:held:{name}")
}

fn page(number: usize) -> String {
    format!("http://example.com/{number}")
}

/// Makes a crawl whose consumers count as stopped after a second without a heartbeat. They send
/// four heartbeats a second.
fn hasty() -> Crawl {
    Crawl::new().set("held.timeout=1s")
}

/// Runs the daemon of the crawl, and returns the crawl with this number of items in its sink.
fn prepared(crawl: Crawl, items: usize) -> Crawl {
    let daemon = crawl.start();
    crawl.push(&(0..items).map(page).collect::<Vec<_>>());
    crawl.wait_for_sink(items);
    stop(daemon);
    crawl
}

fn open(crawl: &Crawl) -> Consumer {
    open_at(&crawl.server.url())
}

fn open_at(url: &str) -> Consumer {
    let options = ConsumerOptions { name: "test".to_owned(), ..ConsumerOptions::default() };
    Consumer::open_with(url, SOURCE, options).unwrap()
}

#[track_caller]
fn pop(consumer: &Consumer) -> Delivery {
    consumer.pop_wait(SOON).unwrap().expect("a request")
}

fn text(delivery: &Delivery) -> &str {
    std::str::from_utf8(delivery.item()).unwrap()
}

fn sink(connection: &mut Connection) -> Vec<String> {
    connection.lrange(SINK, 0, -1).unwrap()
}

fn rejects(connection: &mut Connection) -> Vec<Value> {
    let rejects: Vec<String> = connection.lrange(REJECTED, 0, -1).unwrap();
    rejects.iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// Returns the links of a page. Some links appear twice.
fn links(item: &str) -> Vec<String> {
    let number: usize = item.rsplit('/').next().unwrap().parse().unwrap();
    [number, 2 * number + 1, 2 * number + 2, number + 7].map(|to| page(to % PAGES)).to_vec()
}

#[test]
fn threads_fetch_each_page_once_until_nothing_is_pending() {
    for kind in ["list", "zset"] {
        let crawl = Crawl::new().set(&format!("sink.kind={kind}"));
        let daemon = crawl.start();
        let consumer = open(&crawl);
        consumer.push([page(0), page(0)]).unwrap();
        let fetched = Mutex::new(HashMap::<String, usize>::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while consumer.pending().unwrap() > 0 {
                        let Some(delivery) = consumer.pop().unwrap() else { continue };
                        let item = text(&delivery).to_owned();
                        assert_eq!(delivery.deliveries_before(), 0);
                        assert!(consumer.finish(&delivery, links(&item)).unwrap());
                        *fetched.lock().unwrap().entry(item).or_default() += 1;
                    }
                });
            }
        });
        let fetched = fetched.into_inner().unwrap();
        assert_eq!(fetched.len(), PAGES, "{kind}");
        assert!(fetched.values().all(|&times| times == 1), "{kind}: {fetched:?}");
        drop(consumer);
        assert!(!crawl.connection().exists::<_, bool>(CONSUMERS).unwrap());
        stop(daemon);
    }
}

#[test]
fn a_requeued_delivery_goes_to_the_front() {
    let crawl = prepared(Crawl::new(), 2);
    let consumer = open(&crawl);
    let first = pop(&consumer);
    assert!(consumer.requeue(&first).unwrap());
    assert!(!consumer.requeue(&first).unwrap());
    let again = pop(&consumer);
    assert_eq!((text(&again), again.deliveries_before()), (text(&first), 0));
    assert!(consumer.finish(&again, [""; 0]).unwrap());
    assert!(!consumer.finish(&first, [page(7)]).unwrap());
    assert_eq!(crawl.connection().llen::<_, usize>(SOURCE).unwrap(), 0);
}

#[test]
fn an_unreadable_item_is_rejected_completely() {
    let crawl = prepared(Crawl::new(), 0);
    let mut connection = crawl.connection();
    let large = "x".repeat((1 << 20) + 1);
    let () = connection.rpush(SINK, &[b"\xff".to_vec(), large.clone().into()]).unwrap();
    let consumer = open(&crawl);
    for _ in 0..2 {
        let delivery = pop(&consumer);
        assert!(consumer.reject(&delivery, "no request").unwrap());
        assert!(!consumer.reject(&delivery, "no request").unwrap());
    }
    let found = rejects(&mut connection);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0]["item_base64"].as_str(), &found[0]["reason"]),
        (Some("/w=="), &"no request".into())
    );
    assert_eq!(found[1]["item"].as_str(), Some(&*large));
    assert_eq!(consumer.pending().unwrap(), 0);
}

/// A page that makes its consumer panic is requeued at the front, then at the end, and then
/// rejected. The pages that its consumer held are fetched. In the end, each is held alone, without
/// new pages too.
#[test]
fn only_the_page_that_kills_its_consumers_is_finally_rejected() {
    let crawl = hasty();
    let daemon = crawl.start();
    crawl.push(&[page(0), page(1), page(2)]);
    crawl.wait_for_sink(3);
    let mut connection = crawl.connection();
    let (mut deaths, mut fetched) = (0, Vec::new());
    while deaths < 3 || fetched.len() < 3 {
        let consumer = open(&crawl);
        let mut held = vec![pop(&consumer)];
        while let Some(delivery) = consumer.pop().unwrap() {
            held.push(delivery);
        }
        if held.iter().any(|delivery| text(delivery) == page(0)) {
            assert!(held.iter().all(|delivery| delivery.deliveries_before() == deaths));
            assert_eq!(held.len(), if deaths < 2 { 3 } else { 1 });
            deaths += 1;
            let killed = thread::spawn(move || {
                let _held = (consumer, held);
                panic!("the page is poison");
            });
            killed.join().unwrap_err();
            if deaths == 2 {
                crawl.wait_for_sink(3);
                let () = connection.lpush(SINK, page(3)).unwrap();
            }
        } else {
            let [delivery] = &held[..] else { panic!("{held:?} beside a suspect") };
            assert!(consumer.finish(delivery, [""; 0]).unwrap());
            fetched.push(text(delivery).to_owned());
        }
    }
    fetched.sort();
    assert_eq!(fetched, [page(1), page(2), page(3)]);
    wait_until(SOON, "reject", || connection.llen::<_, usize>(REJECTED).unwrap() > 0);
    let found = rejects(&mut connection);
    assert_eq!((found.len(), &found[0]["item"]), (1, &page(0).into()));
    let reason = found[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("delivered 3 times and never finished"), "{reason}");
    assert_eq!(open(&crawl).pending().unwrap(), 0);
    stop(daemon);
}

/// Two consumers with the same configured name hold equal items separately.
#[test]
fn two_consumers_with_the_same_name_are_independent() {
    let crawl = prepared(Crawl::new(), 0);
    let mut connection = crawl.connection();
    let () = connection.rpush(SINK, &["same", "same"]).unwrap();
    let (one, other) = (open(&crawl), open(&crawl));
    assert_ne!(one.name(), other.name());
    assert!(one.name().starts_with("test#") && other.name().starts_with("test#"));
    let (first, second) = (pop(&one), pop(&other));
    assert_eq!((text(&first), text(&second)), ("same", "same"));
    assert!(one.finish(&first, [""; 0]).unwrap());
    assert_eq!(one.pending().unwrap(), 1);
    assert!(second.is_held());
    assert!(other.finish(&second, [""; 0]).unwrap());
}
