//! Consumers of crawls with several partitions.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use redis::Commands;
use urlseen::{Consumer, ConsumerOptions, Delivery, ErrorKind, Fingerprinter, Item, Request};

use super::{RECORD, SOURCE, page, pop, text};
use crate::daemon::stop;
use crate::library::cutting::Cutting;
use crate::partitions::{Crawl, check_sinks, fingerprints, key, partition_of};
use crate::util::wait::{SOON, wait_until};

/// Consumers count as stopped after a second without a heartbeat.
const HASTY: &str = "held.timeout=1s";

/// Runs the daemon of a crawl until all partitions have their records and `items` items are in the
/// sinks.
pub(super) fn prepared(items: &[String]) -> Crawl {
    let crawl = Crawl::new();
    let daemon = crawl.start(&[HASTY], &[0, 1, 2, 3]);
    crawl.push(items);
    crawl.wait_for_sinks(items.len());
    stop(daemon);
    crawl
}

pub(super) fn open(crawl: &Crawl, options: ConsumerOptions) -> Consumer {
    open_at(&crawl.server.url(), options)
}

pub(super) fn open_at(url: &str, options: ConsumerOptions) -> Consumer {
    Consumer::open_with(url, SOURCE, options).unwrap()
}

pub(super) fn options() -> ConsumerOptions {
    ConsumerOptions::default()
}

/// Pops requests until the sinks are empty.
fn pop_all(consumer: &Consumer) -> Vec<Delivery> {
    std::iter::from_fn(|| consumer.pop().unwrap()).collect()
}

/// Returns the fingerprints of a partition among many.
pub(super) fn of_partition(partition: usize, count: usize) -> Vec<String> {
    let all = fingerprints(100 * count).into_iter();
    all.filter(|it| partition_of(it) == partition).take(count).collect()
}

fn fingerprint(url: &str) -> String {
    Fingerprinter::default().fingerprint(&Request::get(url)).unwrap().to_string()
}

/// Returns JSON that passes unfiltered.
fn unfiltered(number: usize) -> String {
    format!(r#"{{"url": "https://example.com/always/{number}", "dont_filter": true}}"#)
}

/// Returns the items of each source.
fn sources(crawl: &Crawl) -> Vec<Vec<String>> {
    let mut connection = crawl.connection();
    let mut source = |number| connection.lrange(key(SOURCE, number), 0, -1).unwrap();
    (0..4).map(&mut source).collect()
}

/// Returns the number of times that each item is in the sinks.
fn in_sinks(crawl: &Crawl) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in crawl.sinks().into_iter().flatten() {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

fn drain(crawl: &Crawl) {
    let ran = crawl.urlseen(&["run", "--drain", "--json"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let mut connection = crawl.connection();
    for number in 0..4 {
        let rejects: Vec<String> = connection.lrange(key("demo:rejected", number), 0, -1).unwrap();
        assert_eq!(rejects, [""; 0]);
    }
}

#[test]
fn each_item_goes_to_the_partition_of_its_fingerprint() {
    let crawl = prepared(&[]);
    let consumer = open(&crawl, options());
    let digits = fingerprints(40);
    let urls: Vec<String> = (0..40).map(page).collect();
    let with_payload = digits.iter().map(|it| format!("{it}\tpayload")).collect::<Vec<_>>();
    let json = |number: usize| format!(r#"{{"url": "{}", "method": "POST"}}"#, page(number));
    let post = |number: usize| {
        let url = page(number);
        let request = Request { method: "POST", ..Request::get(&url) };
        Fingerprinter::default().fingerprint(&request).unwrap()
    };
    consumer.push(&urls).unwrap();
    consumer.push(with_payload.iter().map(String::as_bytes)).unwrap();
    consumer.push((0..40).map(|number| Item::new(json(number), post(number)))).unwrap();
    let mut expected = vec![Vec::new(); 4];
    for url in &urls {
        expected[partition_of(&fingerprint(url))].push(url.clone());
    }
    for item in &with_payload {
        expected[partition_of(&item[..40])].push(item.clone());
    }
    for number in 0..40 {
        expected[partition_of(&post(number).to_string())].push(json(number));
    }
    assert_eq!(sources(&crawl), expected);
    assert!(expected.iter().all(|items| items.len() > 10), "{expected:?}");

    let always: Vec<String> = (0..40).map(unfiltered).collect();
    consumer.push(always.iter().map(|item| Item::unfiltered(item.as_str()))).unwrap();
    drain(&crawl);
    assert_eq!(in_sinks(&crawl).into_values().collect::<Vec<_>>(), [1; 160]);
}

#[test]
fn an_item_whose_partition_is_not_known_is_refused_with_the_remedy() {
    let crawl = prepared(&of_partition(2, 1));
    let consumer = open(&crawl, options());
    let delivery = pop(&consumer);
    let refused = [
        consumer.push([r#"{"url": "https://example.com/"}"#]).unwrap_err(),
        consumer.finish(&delivery, [&page(0), "\u{feff}{}"]).unwrap_err(),
        consumer.push([&b"\x80\x04N."[..]]).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::NoFingerprint);
        assert!(
            error.to_string().contains("pass urlseen::Item::new(item, fingerprint)"),
            "{error}"
        );
    }
    assert_eq!(sources(&crawl), [const { Vec::<String>::new() }; 4]);
    // The daemon of any partition rejects an item that it cannot read.
    consumer.push(["no URL"]).unwrap();
    assert!(consumer.finish(&delivery, ["no URL either"]).unwrap());
    let sources = sources(&crawl);
    assert_eq!(sources.concat().len(), 2);
    assert_eq!(sources[2].last().unwrap(), "no URL either");
}

#[test]
fn a_full_sink_does_not_starve_the_others() {
    let mut items = of_partition(2, 20);
    items.extend([0, 1, 3].map(|number| of_partition(number, 3)).concat());
    let crawl = prepared(&items);
    let consumer = open(&crawl, options());
    let mut popped = Vec::new();
    for round in 1..=3 {
        popped.extend((0..4).map(|_| pop(&consumer)));
        let mut counts = [0; 4];
        for delivery in &popped {
            counts[partition_of(text(delivery))] += 1;
        }
        assert_eq!(counts, [round; 4]);
    }
    popped.extend(pop_all(&consumer));
    assert_eq!(popped.len(), items.len());
    assert_eq!(consumer.pending().unwrap(), items.len() as u64);
}

#[test]
fn a_consumer_pops_only_from_its_own_partitions() {
    let items = fingerprints(100);
    let crawl = prepared(&items);
    let share = |partitions: &[u16]| ConsumerOptions { partitions: partitions.into(), ..options() };
    let (one, other) = (open(&crawl, share(&[2, 1])), open(&crawl, share(&[0, 3])));
    for (consumer, own) in [(&one, [1, 2]), (&other, [0, 3])] {
        let popped = pop_all(consumer);
        let wanted = items.iter().filter(|it| own.contains(&partition_of(it)));
        assert_eq!(popped.len(), wanted.count());
        assert!(popped.iter().all(|it| own.contains(&partition_of(text(it)))));
        assert_eq!(consumer.pending().unwrap(), 100, "requests of other partitions count, too");
        for (number, delivery) in popped.iter().enumerate() {
            assert!(consumer.finish(delivery, [page(number)]).unwrap());
        }
    }
    let refused = Consumer::open_with(&crawl.server.url(), SOURCE, share(&[4])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Spec);
    assert!(refused.to_string().contains("partitions has 4"), "{refused}");
}

#[test]
fn the_bound_of_held_requests_is_for_all_partitions() {
    let crawl = prepared(&fingerprints(40));
    let consumer = open(&crawl, ConsumerOptions { max_held: 6, ..options() });
    let held: Vec<_> = (0..6).map(|_| pop(&consumer)).collect();
    for _ in 0..4 {
        let error = consumer.pop().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("holds 6 requests"), "{error}");
    }
    assert!(consumer.finish(&held[0], [""; 0]).unwrap());
    let _seventh = pop(&consumer);
    assert_eq!(consumer.pop().unwrap_err().kind(), ErrorKind::Limit);
}

/// Rule H8 of the protocol. The consumer is killed after the other partitions have the links, and
/// before it acknowledges the page.
#[test]
fn a_consumer_that_is_killed_between_pushes_and_acknowledgement_loses_and_repeats_nothing() {
    let crawl = prepared(&of_partition(1, 2));
    let proxy = Cutting::before(&crawl.server);
    let filtered: Vec<String> = (0..40).map(page).collect();
    let always: Vec<String> = (0..40).map(unfiltered).collect();
    let links = || {
        let always = always.iter().map(|item| Item::unfiltered(item.as_str()));
        filtered.iter().map(Item::from).chain(always)
    };
    let killed = open_at(&proxy.url(), ConsumerOptions { retries: 0, ..options() });
    // After this, the server knows the script that finishes a page.
    assert!(killed.finish(&pop(&killed), [""; 0]).unwrap());
    let delivery = pop(&killed);
    let mut lost = 0;
    while lost == 0 {
        proxy.lose_next(1);
        assert_eq!(killed.finish(&delivery, links()).unwrap_err().kind(), ErrorKind::Redis);
        // A heartbeat may have lost its answer in place of the push.
        lost = sources(&crawl).concat().len();
    }
    let sources = sources(&crawl);
    assert_eq!(sources[1], [""; 0], "the page's own partition was not the last one");
    assert!([0, 2, 3].iter().all(|&number| !sources[number].is_empty()));
    let panicked = thread::spawn(move || {
        let _held = (killed, delivery);
        panic!("the consumer is killed");
    });
    panicked.join().unwrap_err();

    let next = open(&crawl, options());
    let delivery = pop(&next);
    assert_eq!(delivery.deliveries_before(), 1);
    assert!(next.finish(&delivery, links()).unwrap());
    assert!(!next.finish(&delivery, links()).unwrap());
    drain(&crawl);
    let found = in_sinks(&crawl);
    assert_eq!(found.len(), 80);
    assert!(found.values().all(|&times| times == 1), "{found:?}");
}

#[test]
fn unfiltered_links_of_a_page_that_another_consumer_has_are_not_pushed() {
    let crawl = prepared(&of_partition(1, 1));
    let proxy = Cutting::before(&crawl.server);
    let (slow, other) = (open_at(&proxy.url(), options()), open(&crawl, options()));
    let delivery = pop(&slow);
    proxy.cut();
    let again = pop(&other);
    proxy.mend();
    let links = || (0..40).map(|number| Item::unfiltered(unfiltered(number)));
    assert!(!slow.finish(&delivery, links()).unwrap());
    assert_eq!(other.pending().unwrap(), 1);
    assert!(other.finish(&again, links()).unwrap());
    assert_eq!(sources(&crawl)[1].len(), 40);
}

/// A consumer requeues and rejects in the partition of the request.
#[test]
fn deliveries_that_are_not_finished_stay_in_their_partition() {
    let items = fingerprints(40);
    let crawl = prepared(&items);
    let consumer = open(&crawl, options());
    for _ in 0..3 {
        for delivery in pop_all(&consumer) {
            assert!(consumer.requeue(&delivery).unwrap());
        }
    }
    check_sinks(&crawl, &items);
    drop(pop_all(&consumer));
    drop(consumer);
    check_sinks(&crawl, &items);
    let consumer = open(&crawl, options());
    for delivery in pop_all(&consumer) {
        assert!(consumer.reject(&delivery, "no page").unwrap());
    }
    let mut connection = crawl.connection();
    for number in 0..4 {
        let rejects: usize = connection.llen(key("demo:rejected", number)).unwrap();
        assert_eq!(rejects, items.iter().filter(|it| partition_of(it) == number).count());
    }
}

#[test]
fn a_partition_that_refuses_its_requests_keeps_no_others() {
    let items = fingerprints(8);
    let crawl = prepared(&items);
    let stop_timeout = Duration::from_millis(100);
    let consumer = open(&crawl, ConsumerOptions { stop_timeout, ..options() });
    let _held = pop_all(&consumer);
    let mut connection = crawl.connection();
    let () = connection.set(key("demo:unseen", 0), "no list").unwrap();
    drop(consumer);
    for number in 1..4 {
        let count = items.iter().filter(|it| partition_of(it) == number).count();
        assert!(count > 0);
        wait_until(SOON, "requeued requests", || {
            connection.llen::<_, usize>(key("demo:unseen", number)).unwrap() == count
        });
    }
}

#[test]
fn another_division_of_the_crawl_is_refused() {
    let crawl = prepared(&fingerprints(4));
    let consumer = open(&crawl, options());
    let mut connection = crawl.connection();
    let tags: String = connection.hget(RECORD, "tags").unwrap();
    let () = connection.hdel(RECORD, "tags").unwrap();
    wait_until(SOON, "refusal", || match consumer.push([page(0)]) {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            let said = error.to_string();
            assert!(said.contains("the crawl had 4 partitions before") && said.contains(RECORD));
            assert_eq!(consumer.pop().unwrap_err().kind(), ErrorKind::Mismatch);
            assert_eq!(consumer.pending().unwrap_err().kind(), ErrorKind::Mismatch);
            true
        }
    });
    let () = connection.hset(RECORD, "tags", tags).unwrap();
    wait_until(SOON, "delivery", || consumer.pop().is_ok());

    let one = Consumer::open(&crawl.server.url(), &key(SOURCE, 1)).unwrap_err();
    assert_eq!(one.kind(), ErrorKind::Mismatch);
    assert!(one.to_string().contains("without the tag of a partition"), "{one}");
    let record = format!("urlseen:{}:crawl", key(SOURCE, 3));
    let () = connection.hset(&record, "partitions", "8").unwrap();
    let other = Consumer::open(&crawl.server.url(), SOURCE).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Mismatch);
    assert!(other.to_string().contains("with 8 partitions"), "{other}");
    let () = connection.del(&record).unwrap();
    let missing = Consumer::open(&crawl.server.url(), SOURCE).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoCrawl);
    assert!(missing.to_string().contains("for partition 3 of 4 yet"), "{missing}");
}
