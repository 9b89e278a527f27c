//! What a line costs when other work comes between the batches, as it does in the daemon. By then
//! the caches hold other things, not the tables by which a line's memory is found.

use std::cell::RefCell;
use std::time::Instant;

use urlseen_core::filter::Sizing;

use super::crawl::Crawl;
use super::filter::{BATCH, Filter};
use super::limit::Limit;
use super::rounds::Rounds;
use super::{KEYS, ROUNDS, fingerprints};

/// How much is read and written between two batches, in KiB. A batch of 1000 items of 94 bytes goes
/// through some seven times its size: Redis's list, its reply, the sockets, and the same back.
const OTHERS: [usize; 4] = [0, 256, 1024, 4096];

/// Memory that other work is done in.
struct Other {
    memory: Vec<u64>,
    at: usize,
}

impl Other {
    fn new() -> Self {
        Self { memory: vec![1; 64 << 17], at: 0 }
    }

    /// Goes through the next so many KiB.
    fn work(&mut self, size: usize) {
        for line in self.memory[self.at..][..size << 7].chunks_mut(8) {
            line[0] += line[7];
        }
        self.at = (self.at + (size << 7)) % self.memory.len();
    }
}

/// Time per key of the filter and of the machine's limit, by how much is done between batches.
pub fn between(sizing: Sizing) {
    let set = sizing.capacity().get() / 2;
    let filter = RefCell::new(Filter::new(sizing, 0, 1));
    filter.borrow_mut().fill(0..set);
    let crawl = RefCell::new(Crawl::new(set));
    let limit = RefCell::new(Limit::new(sizing.geometry().bytes()));
    let lines = sizing.geometry().blocks().get() as usize;
    let mut rounds = Rounds::new("lines between other work", "ns/key");
    for size in OTHERS {
        let (filter, crawl, limit) = (&filter, &crawl, &limit);
        let mut other = Other::new();
        rounds.case(format!("urlseen, hashed before, {size} KiB between"), move || {
            let mut filter = filter.borrow_mut();
            let key_hashes = filter.key_hashes(&fingerprints(&mut crawl.borrow_mut()));
            per_key(
                key_hashes.chunks(BATCH),
                |batch| filter.judge_key_hashes(batch),
                || other.work(size),
            )
        });
        let mut other = Other::new();
        rounds.case(format!("the machine's limit, {size} KiB between"), move || {
            let mut limit = limit.borrow_mut();
            let places = limit.places(lines * KEYS);
            per_key(places.chunks(lines * BATCH), |batch| limit.change(batch), || other.work(size))
        });
    }
    rounds.run(ROUNDS);
}

/// Nanoseconds a key of what is done with each batch, without what is done in between.
fn per_key<B, R>(
    batches: impl Iterator<Item = B>,
    mut work: impl FnMut(B) -> R,
    mut between: impl FnMut(),
) -> f64 {
    let mut spent = 0.0;
    for batch in batches {
        between();
        let begin = Instant::now();
        std::hint::black_box(work(batch));
        spent += begin.elapsed().as_secs_f64();
    }
    spent * 1e9 / KEYS as f64
}
