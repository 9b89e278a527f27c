//! The limiter compared with an exact model, with batches in flight, aborts and recoveries.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::tests::{batch, onward, parameters};
use super::*;
use urlseen_filter::choice::ItemForm;
use urlseen_filter::limit::{By, Counted, LimitRule, Limits};
use urlseen_fingerprint::Algorithm;
use urlseen_fingerprint::rule_pages::Pages;
use urlseen_storage::{Head, LiveFilter as _, Position, Restore as _};

const MAX: u64 = 7;

fn options() -> Options {
    let rule =
        LimitRule { name: "hosts".to_owned(), max: MAX, by: By::Host, pages: Pages::default() };
    Options { limits: [rule].into(), ..Options::new(ItemForm::Auto.into(), Algorithm::Scrapy) }
}

fn engine(threads: usize) -> Engine {
    let threads = Threads::start(threads).unwrap();
    Engine::start(&Parts::local(parameters(), options(), threads)).unwrap()
}

fn at(number: u64) -> Logged {
    Logged { at: Position { number, head: Head::START }, ..Logged::START }
}

/// Model of a crawl: the URLs that were let through, and their numbers by host.
#[derive(Clone, Default)]
struct Model {
    seen: HashSet<String>,
    counts: BTreeMap<String, u64>,
}

impl Model {
    /// Returns the URLs of a batch that are let through, and the number over the limit.
    fn judge(&mut self, items: &[String]) -> (Vec<String>, usize) {
        let (mut passed, mut over) = (Vec::new(), HashSet::new());
        for item in items {
            let host = item.split('/').nth(2).unwrap().to_owned();
            let count = self.counts.entry(host).or_default();
            if self.seen.contains(item) || over.contains(item) {
                continue;
            }
            if *count == MAX {
                over.insert(item);
                continue;
            }
            *count += 1;
            self.seen.insert(item.clone());
            passed.push(item.clone());
        }
        (passed, over.len())
    }
}

fn items(state: &mut u32, size: u32) -> Vec<String> {
    let draw = |_| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("http://h{}.x/{}", *state >> 28, *state >> 20 & 31)
    };
    (0..size).map(draw).collect()
}

#[tokio::test]
async fn each_group_gets_exactly_its_limit_across_batches_and_aborts() {
    for threads in [1, 3] {
        let mut engine = engine(threads);
        let (mut model, mut committed) = (Model::default(), Model::default());
        let (mut state, mut number, mut in_flight) = (1, 0, VecDeque::new());
        for round in 0..300 {
            let items = items(&mut state, round % 50);
            engine.submit(batch(&items));
            let judged = engine.judged().await.unwrap();
            let (passed, _) = model.judge(&items);
            assert_eq!(onward(&judged), passed, "round {round}");
            let over = judged.findings.over_limit.iter().map(|over| &over.fingerprint);
            let over: HashSet<_> = over.collect();
            assert_eq!(over.len(), judged.findings.over_limit.len(), "each is over the limit once");
            in_flight.push_back(model.clone());
            if round % 11 == 10 {
                engine.abort();
                in_flight.clear();
                model = committed.clone();
            } else if in_flight.len() == 3 {
                number += 1;
                engine.settle(at(number));
                committed = in_flight.pop_front().unwrap();
            }
        }
        assert!(committed.counts.values().all(|&count| count <= MAX));
        assert!(committed.counts.values().filter(|&&count| count == MAX).count() > 10);
    }
}

#[tokio::test]
async fn the_filter_never_gets_an_item_over_a_limit() {
    let mut engine = engine(2);
    let urls: Vec<_> = (0..20).map(|number| format!("http://a.x/{number}")).collect();
    for number in 1..=3 {
        engine.submit(batch(&urls));
        let judged = engine.judged().await.unwrap();
        let passed = if number == 1 { 7 } else { 0 };
        assert_eq!((judged.findings.onward.len(), judged.findings.over_limit.len()), (passed, 13));
        assert_eq!(judged.seen_len(), if number == 1 { 0 } else { 7 });
        engine.settle(at(number));
    }
    engine.caught_up().await.unwrap();
    assert_eq!(engine.handle.gauge.fill().counted, 7);
}

#[test]
fn counts_of_a_snapshot_take_only_later_records_of_the_log() {
    let engine = engine(1);
    let mut handle = engine.handle.clone();
    let group = Limits::new(options().limits).claims("http://a.x/")[0].group;
    let one = [Counted { group, items: 1 }];
    let position = |number| at(number).at;
    handle.load_counts(&[Counted { group, items: 4 }], position(5));
    for number in 3..=7 {
        handle.count(&one, position(number));
    }
    let (all, _) = handle.copy_counts().unwrap();
    assert_eq!(all, [Counted { group, items: 6 }]);
    handle.clear();
    assert_eq!(handle.copy_counts().unwrap().0, []);
}
