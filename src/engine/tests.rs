//! The engine against an exact model, with as many threads as a small machine has and more.

use std::collections::HashSet;

use super::*;
use crate::config::{Emit, ItemForm};
use crate::filter::{Seed, Sizing};
use crate::fingerprint::Algorithm;
use crate::item::Items;

fn engine(threads: usize) -> Engine {
    let (form, emit, algorithm) = (ItemForm::Auto, Emit::Item, Algorithm::Scrapy);
    let sizing = Sizing::new("10000".parse().unwrap(), "1e-12".parse().unwrap());
    Engine::start(&Parts {
        layout: Native::new(Seed::new(1), sizing.geometry()),
        items: Options { form, emit, algorithm, keep_fragments: false },
        threads,
    })
    .unwrap()
}

fn batch(items: &[String]) -> Batch<Taken> {
    Batch::new(items.iter().map(String::as_bytes).collect::<Items>())
}

fn urls(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("http://example.com/{number}")).collect()
}

fn onward(batch: &Batch<Judged>) -> Vec<String> {
    batch.onward().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn each_is_unseen_once_in_order_within_and_across_batches_in_flight() {
    for threads in [1, 2, 5] {
        let mut engine = engine(threads);
        let mut model = HashSet::new();
        let mut submitted = VecDeque::new();
        // Batches of all sizes, also smaller than the number of threads, with many repeats.
        let mut state = 1u32;
        for round in 0..200 {
            let items = urls((0..round % 40).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 22
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
    // Commits come late: the next two batches are judged before.
    if engine.uncommitted == 2 {
        engine.committed();
    }
}

#[tokio::test]
async fn what_is_forgotten_is_unseen_again_and_what_is_committed_stays_seen() {
    let mut engine = engine(2);
    for items in [urls(0..10), urls(5..15)] {
        engine.submit(batch(&items));
    }
    assert_eq!(onward(&engine.judged().await.unwrap()), urls(0..10));
    assert_eq!(onward(&engine.judged().await.unwrap()), urls(10..15));
    engine.committed();
    engine.forget();
    engine.submit(batch(&urls(0..20)));
    assert_eq!(onward(&engine.judged().await.unwrap()), urls(10..20));
}

#[tokio::test]
async fn unfiltered_items_go_on_in_their_place_and_are_not_recorded() {
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
    assert_eq!(judged.unfiltered_len(), 2);
    assert_eq!(judged.rejects().map(|(item, _)| item).collect::<Vec<_>>(), [b"junk"]);
    assert_eq!(judged.seen().count(), 0);
}

#[tokio::test]
async fn once_settled_the_gauges_count_all_that_was_committed() {
    let mut engine = engine(5);
    for round in 1..=50u32 {
        engine.submit(batch(&urls((round - 1) * 100..round * 100)));
        assert_eq!(engine.judged().await.unwrap().onward_len(), 100);
        // What is judged meanwhile is not lost, and a future that is dropped leaves no mark behind.
        engine.submit(batch(&urls(0..1)));
        engine.committed();
        tokio::select! {
            biased;
            settled = engine.settled() => settled.unwrap(),
            () = std::future::ready(()) => {}
        }
        engine.settled().await.unwrap();
        assert_eq!(engine.gauges().keys().iter().sum::<u64>(), u64::from(round) * 100);
        assert_eq!(onward(&engine.judged().await.unwrap()).len(), 0);
        engine.committed();
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
    engine.committed();
    assert!(engine.has_room());
}
