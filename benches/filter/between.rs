//! Measures the cost of a random cache line of a filter, with other work between two batches, as in
//! the daemon. The other work pushes the page tables of the filter's memory out of the processor's
//! caches, so that each line costs more.

use std::cell::RefCell;
use std::time::Instant;

use urlseen_core::filter::Sizing;

use super::crawl::Crawl;
use super::filter::{BATCH, Filter};
use super::limit::Limit;
use super::rounds::Rounds;
use super::{KEYS, KINDS, ROUNDS, fingerprints, of_blocks};

/// Amounts of memory, in KiB, that the other work reads and writes between two batches. For
/// comparison: a daemon with a batch of 1000 items of 94 bytes reads and writes about seven times
/// the size of the batch. This memory is in the list in Redis, in the reply, in the sockets, and on
/// the way back to Redis.
const OTHERS: [usize; 4] = [0, 256, 1024, 4096];

/// Memory that the other work reads and writes.
struct Other {
    memory: Vec<u64>,
    at: usize,
}

impl Other {
    fn new() -> Self {
        Self { memory: vec![1; 64 << 17], at: 0 }
    }

    /// Reads and writes the next `size` KiB.
    fn work(&mut self, size: usize) {
        for line in self.memory[self.at..][..size << 7].chunks_mut(8) {
            line[0] += line[7];
        }
        self.at = (self.at + (size << 7)) % self.memory.len();
    }
}

/// Measures the time per key of the filter and of the machine's limit, for each amount of work
/// between batches.
pub fn between(sizing: Sizing) {
    let cases = OTHERS.len() * (ROUNDS + 1);
    let set = sizing.capacity.get() - (cases * KEYS * 3 / 10) as u64;
    let filters = KINDS.map(|kind| {
        let mut filter = Filter::new(kind, sizing, 0, 1);
        filter.fill(0..set);
        (kind, RefCell::new((filter, Crawl::new(set))))
    });
    let limit = RefCell::new(Limit::new(sizing.geometry.bytes()));
    let mut rounds = Rounds::new("test-and-set between other work", "ns/key");
    for size in OTHERS {
        for (kind, filter) in &filters {
            let mut other = Other::new();
            rounds.case(format!("{kind}, hashed before, {size} KiB between"), move || {
                let (filter, crawl) = &mut *filter.borrow_mut();
                let key_hashes = filter.key_hashes(&fingerprints(crawl));
                per_key(
                    key_hashes.chunks(BATCH),
                    |batch| filter.judge_key_hashes(batch),
                    || other.work(size),
                )
            });
        }
        for blocks in [1, 2] {
            let (limit, mut other) = (&limit, Other::new());
            let name = format!("the machine's limit, {}, {size} KiB between", of_blocks(blocks));
            rounds.case(name, move || {
                let mut limit = limit.borrow_mut();
                let places = limit.places(blocks * KEYS);
                let batches = places.chunks(blocks * BATCH);
                per_key(batches, |batch| limit.change(batch), || other.work(size))
            });
        }
    }
    rounds.run(ROUNDS);
}

/// Returns the nanoseconds per key that `work` takes. The time of `between` does not count.
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
