//! No batch overtakes a step of the judge.

use super::expiry_tests::expiring;
use super::tests::{batch, engine, onward, urls};
use super::*;
use urlseen_core::filter::generation::Generation;

/// Submits a batch right after `step`, while the judge is away, and waits until it is read.
fn submit_after(engine: &mut Engine, items: &[String], step: impl FnOnce(&mut Engine)) {
    let queue = Arc::clone(&engine.handle.queue);
    queue.with(|_| {
        step(engine);
        engine.submit(batch(items));
        while !queue.has_read_batch() {
            std::thread::yield_now();
        }
    });
}

/// Judges a batch, which is committed.
async fn committed(engine: &mut Engine, items: &[String]) {
    engine.submit(batch(items));
    engine.judged().await.unwrap();
    engine.committed(Logged::START);
}

#[tokio::test]
async fn no_batch_overtakes_an_abort() {
    for count in [10, 1000] {
        let (mut engine, items) = (engine(2), urls(0..count));
        engine.submit(batch(&items));
        engine.judged().await.unwrap();
        submit_after(&mut engine, &items, Engine::abort);
        assert_eq!(onward(&engine.judged().await.unwrap()), items);
    }
}

#[tokio::test]
async fn no_batch_overtakes_an_emptying() {
    let (mut engine, items) = (engine(2), urls(0..1000));
    committed(&mut engine, &items).await;
    engine.settled().await.unwrap();
    submit_after(&mut engine, &items, Engine::evict_seen);
    assert_eq!(onward(&engine.judged().await.unwrap()), items);
}

#[tokio::test]
async fn no_batch_overtakes_a_generation() {
    let (mut engine, items) = (expiring(), urls(0..1000));
    engine.begin_generation(Generation::new(100));
    engine.submit(batch(&items));
    engine.judged().await.unwrap();
    let generation = Generation::new(100);
    engine.committed(Logged { generation, ..Logged::START });
    engine.settled().await.unwrap();
    let begin = |engine: &mut Engine| engine.begin_generation(Generation::new(106));
    submit_after(&mut engine, &items, begin);
    assert_eq!(onward(&engine.judged().await.unwrap()), items);
}
