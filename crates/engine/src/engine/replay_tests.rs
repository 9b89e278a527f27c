//! Compares a filter at work with the filter that a recovery makes from its folder. Keys have so
//! few bits that different URLs have the same key (rule G5). In every second round they expire
//! (rules G2 and G6).

use tempfile::TempDir;

use super::query::{self, Asker, Extra};
use super::store::{Keeping, Local, Write};
use super::tests::{batch, engine_for, urls};
use super::works_tests::question;
use super::*;
use crate::item::batch::Ready;
use std::collections::VecDeque;
use urlseen_filter::choice::Fsync;
use urlseen_filter::{FilterSpec, Kind, Parameters, Verdict};
use urlseen_fingerprint::{Algorithm, Fingerprint};
use urlseen_storage::{Folder, Head, StoragePolicy, StorageSpec};

const URLS: u32 = 3000;

/// Filter at work, with its folder.
struct World {
    folder: TempDir,
    parameters: Parameters,
    works: Works,
    asker: Asker,
    /// Batches that are in the log and not committed, the oldest first.
    ready: VecDeque<Batch<Ready>>,
    head: Head,
    /// Generation that was logged last; `None` if the keys do not expire.
    generation: Option<u32>,
    random: u64,
}

/// Returns the parameters of a filter whose keys have four bits and their shard.
fn parameters(expires: bool) -> Parameters {
    let value = |name| match name {
        "filter.capacity" | "filter.grow_to" | "filter.seed" => Some("1".to_owned()),
        "filter.error_rate" => Some("0.1".to_owned()),
        "filter.expire_after" => expires.then(|| "30d".to_owned()),
        _ => None,
    };
    Kind::TWO_CHOICE.read(&value).unwrap()
}

fn local(folder: &TempDir, parameters: &Parameters) -> Local {
    let filter =
        FilterSpec { parameters: parameters.clone(), fingerprint: Algorithm::Scrapy.into() };
    let keeping = Keeping {
        spec: StorageSpec { crawl: "replay".to_owned(), filter },
        policy: StoragePolicy { fsync: Fsync::Never, ..StoragePolicy::default() },
        emit_again: false,
    };
    Local::kept(engine_for(parameters.clone(), 2), Folder::open(folder.path()).unwrap(), keeping)
}

fn verdicts(engine: &Engine) -> Vec<Verdict> {
    let of = |number| question(Wanted::Test, number).fingerprint;
    engine.handle.test(&(0..URLS).map(of).collect::<Vec<Fingerprint>>()).unwrap()
}

impl World {
    fn new(seed: u64, expires: bool) -> Self {
        let (folder, parameters) = (tempfile::tempdir().unwrap(), parameters(expires));
        let mut local = local(&folder, &parameters);
        local.recover_to(None, None).unwrap();
        let (asker, dispatcher) = query::open(1 << 20);
        let works = local.work(dispatcher).unwrap();
        let (ready, head) = (VecDeque::new(), Head::START);
        let generation = expires.then_some(99);
        Self { folder, parameters, works, asker, ready, head, generation, random: seed }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from((self.random >> 33) % u64::from(bound)).unwrap()
    }

    async fn step(&mut self) {
        match self.below(12) {
            0..5 => {
                let count = self.below(40);
                let numbers: Vec<u32> = (0..count).map(|_| self.below(URLS)).collect();
                if self.ready.len() < 8 {
                    self.works.engine.submit(batch(&urls(numbers)));
                }
            }
            5..8 => {
                if let Some(batch) = self.ready.pop_front() {
                    self.head = batch.head();
                    self.works.engine.settle(batch.end());
                }
            }
            8 => self.settle().await,
            9 => self.begin_generation().await,
            wanted => {
                let wanted = if wanted == 10 { Wanted::Add } else { Wanted::Forget };
                let count = self.below(60);
                let questions = (0..count).map(|_| question(wanted, self.below(URLS))).collect();
                self.ask(questions).await;
            }
        }
    }

    /// Asks, while batches are judged and logged.
    async fn ask(&mut self, questions: Vec<Question>) {
        let asker = self.asker.clone();
        let mut answer = std::pin::pin!(asker.ask(questions, Extra::Nothing));
        loop {
            tokio::select! {
                answer = &mut answer => return drop(answer.unwrap()),
                event = self.works.next(true) => self.take(event.unwrap()),
            }
        }
    }

    async fn begin_generation(&mut self) {
        if let Some(generation) = &mut self.generation {
            *generation += 1;
            let generation = Generation::new(*generation);
            self.works.storage.as_mut().unwrap().write(Write::Generation(generation));
            while self.works.engine.generation != generation {
                let event = self.works.next(true).await.unwrap();
                self.take(event);
            }
        }
    }

    /// Waits until the log has all submitted batches.
    async fn settle(&mut self) {
        while self.works.in_progress() > 0 {
            let event = self.works.next(true).await.unwrap();
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Judged(batch) => self.works.log(batch),
            Event::Ready(batch) => self.ready.push_back(batch),
            _ => {}
        }
    }

    /// Does some steps, and waits until the filter has their keys.
    async fn work(&mut self) {
        self.begin_generation().await;
        for _ in 0..120 {
            self.step().await;
        }
        self.settle().await;
        self.works.engine.caught_up().await.unwrap();
    }

    /// Ends the filter as a kill does, and compares it with the recovered one.
    fn compare(self, seed: u64) {
        let live = verdicts(&self.works.engine);
        let Self { folder, parameters, works, head, .. } = self;
        drop(works);
        let mut local = local(&folder, &parameters);
        local.recover_to(Some(head), local.filter()).unwrap();
        assert_eq!(verdicts(&local.engine), live, "seed {seed}");
        let seen = live.iter().filter(|&&verdict| verdict == Verdict::Seen).count();
        assert!(seen > 50, "seed {seed}: {seen} of {URLS} are seen");
    }
}

#[test]
fn a_recovered_filter_is_the_one_at_work_although_urls_have_the_same_key() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for seed in 0..16 {
        let mut world = World::new(seed, seed % 2 == 1);
        runtime.block_on(world.work());
        world.compare(seed);
    }
}
