//! The engine compared with an exact model, with few and with many threads.

use std::collections::{HashSet, VecDeque};

use super::reading::PART;
use super::*;
use crate::item::{Items, Options};
use urlseen_filter::choice::ItemForm;
use urlseen_filter::{Kind, Parameters, Seed, ShardId, Sizing, Verdict};
use urlseen_fingerprint::Request;
use urlseen_fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen_storage::{Copied, Head, LiveFilter as _, Position, Restore as _, Section};

pub(super) fn parameters() -> Parameters {
    let sizing = Sizing::new("10000".parse().unwrap(), "1e-12".parse().unwrap());
    Parameters::native(&sizing, Some(Seed::new(1)))
}

pub(super) fn engine(threads: usize) -> Engine {
    engine_for(parameters(), threads)
}

/// Makes an engine with a filter of the kind `two-choice`, which begins with a few slots. A key has
/// four bits and its shard, so some of the URLs have the same key.
pub(super) fn engine_with_few_keys(threads: usize) -> Engine {
    let value = |name| match name {
        "filter.capacity" | "filter.grow_to" | "filter.seed" => Some("1".to_owned()),
        "filter.error_rate" => Some("0.1".to_owned()),
        _ => None,
    };
    engine_for(Kind::TWO_CHOICE.read(&value).unwrap(), threads)
}

pub(super) fn engine_for(parameters: Parameters, threads: usize) -> Engine {
    let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    Engine::start(&Parts::local(parameters, items, Threads::start(threads).unwrap())).unwrap()
}

pub(super) fn batch(items: &[String]) -> Batch<Claimed> {
    Batch::new(items.iter().map(String::as_bytes).collect::<Items>())
}

pub(super) fn urls(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("http://example.com/{number}")).collect()
}

pub(super) fn onward(batch: &Batch<Judged>) -> Vec<String> {
    batch.onward().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect()
}

/// Point 9 of the proof in ARCHITECTURE.md: an item is judged once, even while it is in flight.
#[tokio::test]
async fn each_item_is_unseen_once_within_and_across_batches_in_flight() {
    for threads in [1, 2, 5] {
        let mut engine = engine(threads);
        let mut model = HashSet::new();
        let mut submitted = VecDeque::new();
        // Batches of all sizes, read by one thread and by all of them, with many repeats.
        let mut state = 1u32;
        for round in 0..200 {
            let size = if round % 5 == 0 { round * PART / 40 } else { round % 40 };
            let items = urls((0..size).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 17
            }));
            engine.submit(batch(&items));
            submitted.push_back(items);
            if submitted.len() == 3 {
                check(&mut engine, &mut model, &mut submitted).await;
            }
        }
        while !submitted.is_empty() {
            check(&mut engine, &mut model, &mut submitted).await;
        }
    }
}

async fn check(
    engine: &mut Engine,
    model: &mut HashSet<String>,
    submitted: &mut VecDeque<Vec<String>>,
) {
    let items = submitted.pop_front().unwrap();
    let expected: Vec<_> = items.into_iter().filter(|item| model.insert(item.clone())).collect();
    assert_eq!(onward(&engine.judged().await.unwrap()), expected);
    // Commits come late: the engine judges two more batches before a batch is committed.
    if engine.uncommitted == 2 {
        engine.settle(Logged::START);
    }
}

#[tokio::test]
async fn unfiltered_items_keep_their_place_and_are_not_recorded() {
    let mut engine = engine(3);
    let plain = urls(0..3);
    let unfiltered = r#"{"url": "http://example.com/0", "dont_filter": true}"#.to_owned();
    let items = [&plain[0], &unfiltered, &plain[1], &"junk".to_owned(), &unfiltered, &plain[2]];
    engine.submit(batch(&items.map(String::clone)));
    let judged = engine.judged().await.unwrap();
    assert_eq!(
        onward(&judged),
        [&plain[0], &unfiltered, &plain[1], &unfiltered, &plain[2]].map(String::clone)
    );
    assert_eq!(judged.findings.unfiltered.len(), 2);
    assert_eq!(judged.rejects().map(|(item, _)| item).collect::<Vec<_>>(), [b"junk"]);
    assert_eq!(judged.seen().count(), 0);
}

#[tokio::test]
async fn a_settled_gauge_counts_all_committed_batches() {
    let mut engine = engine(5);
    for round in 1..=50u32 {
        engine.submit(batch(&urls((round - 1) * 100..round * 100)));
        assert_eq!(engine.judged().await.unwrap().findings.onward.len(), 100);
        // A batch that is judged while `caught_up` waits is not lost. The future of the first call
        // may be dropped early.
        engine.submit(batch(&urls(0..1)));
        engine.settle(Logged::START);
        tokio::select! {
            biased;
            settled = engine.caught_up() => settled.unwrap(),
            () = std::future::ready(()) => {}
        }
        engine.caught_up().await.unwrap();
        assert_eq!(engine.handle.gauge.fill().counted, u64::from(round) * 100);
        assert_eq!(onward(&engine.judged().await.unwrap()).len(), 0);
        engine.settle(Logged::START);
    }
}

#[tokio::test]
async fn there_is_a_bound_on_batches() {
    let mut engine = engine(1);
    for _ in 0..BATCHES_MAX {
        assert!(engine.has_room());
        engine.submit(batch(&urls(0..1)));
    }
    assert!(!engine.has_room());
    for _ in 0..BATCHES_MAX {
        engine.judged().await.unwrap();
    }
    assert!(!engine.has_room());
    engine.settle(Logged::START);
    assert!(engine.has_room());
}

/// Tests `urls` through a handle.
fn tested(engine: &Engine, urls: &[String]) -> Vec<Verdict> {
    engine.handle.test(&fingerprints(urls)).unwrap()
}

pub(super) fn fingerprints(urls: &[String]) -> Vec<Fingerprint> {
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    urls.iter().map(|url| fingerprinter.fingerprint(&Request::get(url)).unwrap()).collect()
}

#[tokio::test]
async fn a_batch_carries_the_fingerprints_that_it_adds() {
    for threads in [1, 3] {
        let mut engine = engine(threads);
        let mut items = urls([1, 2, 3, 2, 4]);
        items.insert(1, "not a url".to_owned());
        items.insert(3, r#"{"url": "http://a/", "dont_filter": true}"#.to_owned());
        engine.submit(batch(&items));
        let judged = engine.judged().await.unwrap();
        assert_eq!(judged.findings.added, fingerprints(&urls([1, 2, 3, 4])));
        engine.settle(Logged::START);
        engine.submit(batch(&urls([4, 5, 1])));
        assert_eq!(engine.judged().await.unwrap().findings.added, fingerprints(&urls([5])));
    }
}

/// Point 8 of the proof in ARCHITECTURE.md: bits are set only after the commit.
#[tokio::test]
async fn a_handle_sees_committed_items_and_sets_nothing() {
    let mut engine = engine(2);
    let items = urls(0..100);
    engine.submit(batch(&items));
    engine.judged().await.unwrap();
    assert_eq!(tested(&engine, &items), vec![Verdict::Unseen; 100]);
    engine.settle(Logged::START);
    let more = urls(50..150);
    let expected: Vec<_> = (50..150).map(|number| Verdict::of(number < 100)).collect();
    assert_eq!(tested(&engine, &more), expected);
    assert_eq!(tested(&engine, &more), expected, "a second test gives the same answers");
}

#[tokio::test]
async fn a_filter_is_copied_shard_by_shard_and_loaded_by_other_threads() {
    let at = Position { number: 7, head: Head::START.next() };
    let mut from = engine(3);
    from.submit(batch(&urls(0..1000)));
    from.judged().await.unwrap();
    from.settle(Logged { at, ..Logged::START });
    let mut to = engine(2);
    let mut filter = to.restoring();
    filter.set(&fingerprints(&urls(5000..5100)), Generation::FOREVER);
    filter.clear();
    for shard in ShardId::all() {
        let Copied { blob, at: copied_at, .. } = from.handle.copy(shard, Vec::new()).unwrap();
        assert_eq!(copied_at, at);
        let section = Section { shard, at, keys: blob.keys(), len: blob.len(), begin: 0 };
        filter.load(section, &mut blob.into_buffer().as_slice()).unwrap();
    }
    filter.set(&fingerprints(&urls(1000..1010)), Generation::FOREVER);
    filter.stand(at);
    to.caught_up().await.unwrap();
    assert_eq!(to.handle.gauge.fill().counted, 1010);
    assert_eq!(to.handle.copy(ShardId::all().next().unwrap(), vec![9]).unwrap().at, at);
    let seen = tested(&to, &urls(0..6000));
    assert!((0..).zip(seen).all(|(number, seen)| seen == Verdict::of(number < 1010)));
}

#[tokio::test]
async fn an_emptied_filter_has_seen_nothing_and_remembers_no_batch() {
    let mut engine = engine(2);
    engine.submit(batch(&urls(0..10)));
    engine.judged().await.unwrap();
    engine.settle(Logged::START);
    engine.submit(batch(&urls(10..20)));
    engine.judged().await.unwrap();
    engine.restoring().clear();
    engine.submit(batch(&urls(0..20)));
    assert_eq!(engine.judged().await.unwrap().findings.onward.len(), 20);
}

#[test]
fn a_handle_that_outlives_its_engine_gets_no_answers() {
    let engine = engine(2);
    let handle = engine.handle.clone();
    drop(engine);
    assert!(handle.copy(ShardId::all().next().unwrap(), Vec::new()).is_none());
    assert!(handle.test(&fingerprints(&urls([1]))).is_none());
}
