//! Engines that share their threads.

use std::io::{self, Read};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::tests::{batch, onward, parameters, urls};
use super::*;
use crate::item::Options;
use urlseen_filter::ShardId;
use urlseen_filter::choice::ItemForm;
use urlseen_fingerprint::Algorithm;
use urlseen_storage::{LiveFilter as _, Position, Restore as _, Section};

fn engine(threads: &Threads) -> Engine {
    let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    Engine::start(&Parts::local(parameters(), items, threads.clone())).unwrap()
}

#[tokio::test]
async fn many_engines_work_on_few_threads_and_each_has_its_own_filter() {
    let threads = Threads::start(2).unwrap();
    let mut engines: Vec<_> = (0..20).map(|_| engine(&threads)).collect();
    for round in 0..10 {
        let items = urls(round * 50..round * 50 + 100);
        for engine in &mut engines {
            engine.submit(batch(&items));
        }
        for engine in &mut engines {
            let judged = engine.judged().await.unwrap();
            let unseen = if round == 0 { &items[..] } else { &items[50..] };
            assert_eq!(onward(&judged), unseen);
            engine.settle(Logged::START);
        }
    }
}

/// Item at which a reader panics.
pub(super) const PANICS: &[u8] = b"http://panics.example/";

/// Checks that an engine after a panic ends with that error, and that another engine works on.
async fn assert_only_one_ends(threads: &Threads, mut broken: Engine) {
    let ended = tokio::time::timeout(Duration::from_secs(20), broken.judged()).await;
    assert_eq!(ended.expect("it does not hang").unwrap_err(), EngineError::Panicked);
    assert_eq!(broken.caught_up().await, Err(EngineError::Panicked));
    let mut other = engine(threads);
    other.submit(batch(&urls(0..10)));
    assert_eq!(other.judged().await.unwrap().findings.onward.len(), 10);
    drop(broken);
}

#[tokio::test]
async fn a_panic_of_the_judge_ends_one_engine_and_not_the_threads() {
    let threads = Threads::start(1).unwrap();
    let broken = engine(&threads);
    // No batch was judged.
    broken.handle.queue.add(|judge| judge.settle(Logged::START));
    assert_only_one_ends(&threads, broken).await;
}

#[tokio::test]
async fn a_panic_of_a_reader_ends_one_engine_and_not_the_threads() {
    let item = String::from_utf8(PANICS.to_vec()).unwrap();
    // The task reads a short batch itself.
    for others in [0, 1000] {
        let threads = Threads::start(1).unwrap();
        let mut broken = engine(&threads);
        let items = [urls(0..others), vec![item.clone()]].concat();
        broken.submit(batch(&items));
        assert_only_one_ends(&threads, broken).await;
    }
}

#[tokio::test]
async fn a_panic_of_a_job_ends_only_the_job() {
    let threads = Threads::start(1).unwrap();
    let panicked: Result<(), _> = threads.run(|| panic!("for the test")).await;
    assert_eq!(panicked, Err(EngineError::Panicked));
    assert_eq!(threads.run(|| 7).await, Ok(7));
}

#[test]
fn a_shard_that_loads_slowly_delays_no_other_engine() {
    /// Saved shard whose bytes come after the other engine has judged a batch.
    struct Slow<'a> {
        saved: &'a [u8],
        other: Engine,
        runtime: Runtime,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.other.submit(batch(&urls(0..10)));
            self.runtime.block_on(self.other.judged()).map_err(io::Error::other)?;
            self.saved.read(buffer)
        }
    }

    let threads = Threads::start(1).unwrap();
    let (mut engine, mut other) = (engine(&threads), engine(&threads));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.submit(batch(&urls(0..1000)));
    runtime.block_on(other.judged()).unwrap();
    other.settle(Logged::START);
    let shard = ShardId::all().next().unwrap();
    let blob = other.handle.copy(shard, Vec::new()).unwrap().blob;
    let section =
        Section { shard, at: Position::START, keys: blob.keys(), len: blob.len(), begin: 0 };
    let saved = blob.into_buffer();
    let mut slow = Slow { saved: &saved, other, runtime };
    engine.restoring().load(section, &mut slow).unwrap();
    engine.restored_blocking().unwrap();
    assert_eq!(engine.handle.gauge.fill().counted, section.keys);
}
