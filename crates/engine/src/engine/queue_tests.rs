//! No batch overtakes a step of the judge.

use crossbeam_channel::{Receiver, unbounded};

use super::expiry_tests::expiring_parameters;
use super::tests::{batch, onward, parameters, urls};
use super::threads::Work;
use super::*;
use crate::item::Options;
use urlseen_filter::Generation;
use urlseen_filter::Parameters;
use urlseen_filter::choice::ItemForm;
use urlseen_fingerprint::Algorithm;

/// Number of items of a batch that can be judged at once.
const PAGE: u32 = 40;

/// Engine whose work is only done when a test does it.
struct Held {
    engine: Engine,
    works: Receiver<Work>,
}

impl Held {
    fn new(parameters: Parameters) -> Self {
        let (line, works) = unbounded();
        let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
        let parts = Parts::local(parameters, items, Threads { line, count: 2 });
        Self { engine: Engine::start(&parts).unwrap(), works }
    }

    fn work(&self) {
        for work in self.works.try_iter() {
            work.begin();
        }
    }

    /// Returns the items of the next batch that pass.
    async fn passed(&mut self) -> Vec<String> {
        self.work();
        onward(&self.engine.judged().await.unwrap())
    }

    /// Commits a batch of these items.
    async fn commit(&mut self, items: &[String], generation: Generation) {
        self.engine.submit(batch(items));
        assert_eq!(self.passed().await, items);
        self.engine.settle(Logged { generation, ..Logged::START });
        self.work();
    }

    /// Checks that all items pass in a batch that is submitted right after `step`. It is short
    /// enough to be judged at once, or it is read before the step is done.
    async fn check(mut self, items: &[String], is_read: bool, step: impl FnOnce(&mut Engine)) {
        let queue = Arc::clone(&self.engine.handle.queue);
        if is_read {
            queue.with(|_| {
                step(&mut self.engine);
                self.engine.submit(batch(items));
                self.work();
            });
        } else {
            step(&mut self.engine);
            self.engine.submit(batch(items));
        }
        assert_eq!(self.passed().await, items);
    }
}

#[tokio::test]
async fn no_batch_overtakes_an_abort() {
    for is_read in [true, false] {
        let (mut held, items) = (Held::new(parameters()), urls(0..PAGE));
        held.engine.submit(batch(&items));
        assert_eq!(held.passed().await, items);
        held.check(&items, is_read, Engine::abort).await;
    }
}

#[tokio::test]
async fn no_batch_overtakes_an_emptying() {
    for is_read in [true, false] {
        let (mut held, items) = (Held::new(parameters()), urls(0..PAGE));
        held.commit(&items, Generation::FOREVER).await;
        held.check(&items, is_read, Engine::evict_seen).await;
    }
}

#[tokio::test]
async fn no_batch_overtakes_a_generation() {
    for is_read in [true, false] {
        let (mut held, items) = (Held::new(expiring_parameters()), urls(0..PAGE));
        let generation = Generation::new(100);
        held.engine.begin_generation(generation);
        held.commit(&items, generation).await;
        let begin = |engine: &mut Engine| engine.begin_generation(Generation::new(106));
        held.check(&items, is_read, begin).await;
    }
}
