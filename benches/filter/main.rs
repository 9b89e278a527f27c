//! Time per key to test and set keys in a filter that is far larger than the processor's cache.
//! Other sets and the machine's limit are measured beside it.
//!
//! Without arguments, the program measures 100 million keys. `--large` also measures a billion
//! keys, which takes 21 GiB of memory and 15 minutes. `--between` measures only the effect of other
//! work between two batches.

mod between;
mod crawl;
mod filter;
mod limit;
mod peers;
#[path = "../rounds/mod.rs"]
mod rounds;

use std::cell::RefCell;
use std::time::Instant;

use crawl::{Crawl, fingerprint};
use filter::Filter;
use limit::Limit;
use peers::{Exact, Fastbloom};
use rounds::Rounds;
use urlseen_core::filter::{Capacity, ErrorRate, Sizing};
use urlseen_core::fingerprint::Fingerprint;

const ERROR_RATE: f64 = 1e-8;
/// Number of keys that the filter tests in one round.
const KEYS: usize = 500_000;
const ROUNDS: usize = 15;
/// Number of unseen keys that a full filter tests, to count its wrong verdicts.
const UNSEEN: u64 = 500_000_000;

fn main() {
    let sizing = |keys| {
        let capacity = Capacity::new(keys).expect("a capacity");
        Sizing::new(capacity, ErrorRate::new(ERROR_RATE).expect("an error rate"))
    };
    let is_given = |option: &str| std::env::args().any(|argument| argument == option);
    if is_given("--between") {
        return between::between(sizing(100_000_000));
    }
    test_and_set("test-and-set 100M", sizing(100_000_000), true);
    threads(sizing(100_000_000));
    wrong_verdicts(sizing(100_000_000));
    if is_given("--large") {
        test_and_set("test-and-set 1G", sizing(1_000_000_000), false);
    }
}

/// Measures the time per key of a half-full filter, of other sets with the same keys, and of the
/// machine's limit.
fn test_and_set(group: &str, sizing: Sizing, with_exact: bool) {
    let capacity = sizing.capacity.get();
    let set = capacity / 2;
    let filter = RefCell::new(Filter::new(sizing, 0, 1));
    filter.borrow_mut().fill(0..set);
    let mut fastblooms = [Fastbloom::new(sizing), Fastbloom::in_huge_pages(sizing)];
    for fastbloom in &mut fastblooms {
        fastbloom.fill(0..set);
    }
    let mut exact = with_exact.then(|| Exact::new(sizing));
    if let Some(exact) = &mut exact {
        exact.fill(0..set);
    }
    let mut limit = Limit::new(sizing.geometry.bytes());

    let mut bits = Rounds::new(group, "bits/key");
    bits.case("urlseen", || sizing.bits_per_key());
    bits.case("fastbloom", || fastblooms[0].bits() as f64 / capacity as f64);
    if let Some(exact) = &exact {
        bits.case("HashSet", || exact.bits() as f64 / capacity as f64);
    }
    bits.run(1);

    let mut rounds = Rounds::new(group, "ns/key");
    let crawl = RefCell::new(Crawl::new(set));
    rounds.case("urlseen", || {
        let keys = fingerprints(&mut crawl.borrow_mut());
        per_key(|| filter.borrow_mut().judge(&keys))
    });
    rounds.case("urlseen, hashed before", || {
        let keys = fingerprints(&mut crawl.borrow_mut());
        let key_hashes = filter.borrow().key_hashes(&keys);
        per_key(|| filter.borrow_mut().judge_key_hashes(&key_hashes))
    });
    for (name, mut fastbloom) in
        ["fastbloom", "fastbloom in huge pages"].into_iter().zip(fastblooms)
    {
        let mut crawl = Crawl::new(set);
        rounds.case(name, move || {
            let keys = fingerprints(&mut crawl);
            per_key(|| fastbloom.judge(&keys))
        });
    }
    if let Some(mut exact) = exact {
        let mut crawl = Crawl::new(set);
        rounds.case("HashSet", move || {
            let keys = fingerprints(&mut crawl);
            per_key(|| exact.judge(&keys))
        });
    }
    rounds.case("the machine's limit", || {
        let lines = sizing.geometry.blocks().get() as usize;
        let places = limit.places(lines * KEYS);
        per_key(|| limit.change(&places))
    });
    rounds.run(ROUNDS);
}

/// Measures the keys per second of several filter threads together, each with its own shards.
fn threads(sizing: Sizing) {
    let mut rounds = Rounds::new("threads", "keys/s");
    for owners in 1..=std::thread::available_parallelism().map_or(1, usize::from) {
        let mut filters: Vec<_> = (0..owners).map(|n| Filter::new(sizing, n, owners)).collect();
        let set = sizing.capacity.get() / 2;
        for filter in &mut filters {
            filter.fill(0..set);
        }
        let mut crawl = Crawl::new(set);
        rounds.case(owners.to_string(), move || {
            let keys = fingerprints(&mut crawl);
            let own: Vec<_> = filters.iter().map(|filter| filter.own(&keys)).collect();
            let seconds = time(|| {
                std::thread::scope(|scope| {
                    for (filter, own) in filters.iter_mut().zip(&own) {
                        scope.spawn(|| filter.judge(own));
                    }
                });
            });
            KEYS as f64 / seconds
        });
    }
    rounds.run(ROUNDS);
}

/// Counts the unseen keys that a full filter reports as seen. Prints this count beside the count
/// that the error rate promises.
fn wrong_verdicts(sizing: Sizing) {
    let capacity = sizing.capacity.get();
    let mut filter = Filter::new(sizing, 0, 1);
    filter.fill(0..capacity);
    let mut rounds = Rounds::new("wrong verdicts, full", "of 500 million unseen");
    let mut next = capacity;
    rounds.case("promised", || UNSEEN as f64 * ERROR_RATE);
    rounds.case("urlseen", || {
        next += UNSEEN;
        filter.seen(next - UNSEEN..next) as f64
    });
    rounds.run(1);
}

/// Returns the next fingerprints of a crawl, enough for one round.
fn fingerprints(crawl: &mut Crawl) -> Vec<Fingerprint> {
    crawl.keys(KEYS).into_iter().map(fingerprint).collect()
}

/// Returns the nanoseconds per key that `work` takes for the keys of one round.
fn per_key<R>(work: impl FnOnce() -> R) -> f64 {
    time(work) * 1e9 / KEYS as f64
}

/// Returns the seconds that `work` takes.
fn time<R>(work: impl FnOnce() -> R) -> f64 {
    let begin = Instant::now();
    std::hint::black_box(work());
    begin.elapsed().as_secs_f64()
}
