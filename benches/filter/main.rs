//! Time per key to test and set keys in a filter that is far larger than the processor's cache.
//! Other sets and the machine's limit are measured beside it.
//!
//! Without arguments, the program measures 10 and 100 million keys. `--large` also measures a
//! billion keys, which takes 17 GiB of memory and some minutes.
//!
//! - `--between` measures only the effect of other work between two batches.
//! - `--growing` measures only the time of each batch while a filter grows. With `--large`, it also
//!   grows to a billion keys, which takes half an hour.
//! - `--fastbloom` measures only fastbloom beside the kind native, for 10 million keys. With
//!   `--large`, it measures a billion keys instead, which takes a quarter of an hour.

mod between;
mod crawl;
mod filter;
mod growing;
mod limit;
mod peers;
#[path = "../rounds/mod.rs"]
mod rounds;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use crawl::{Crawl, fingerprint};
use filter::Filter;
use growing::growing;
use limit::Limit;
use peers::{Exact, Fastbloom, Peers, Qfilter};
use rounds::Rounds;
use urlseen_core::filter::{Capacity, ErrorRate, Kind, Sizing};
use urlseen_core::fingerprint::Fingerprint;

const ERROR_RATE: f64 = 1e-8;
/// Number of keys that the filter tests in one round.
const KEYS: usize = 500_000;
const ROUNDS: usize = 15;
/// Number of unseen keys that a full filter tests, to count its wrong verdicts.
const UNSEEN: u64 = 500_000_000;

/// Kinds that are measured beside each other.
const KINDS: [Kind; 2] = [Kind::NATIVE, Kind::TWO_CHOICE];

fn main() {
    let sizing = |keys| {
        let capacity = Capacity::new(keys).expect("a capacity");
        Sizing::new(capacity, ErrorRate::new(ERROR_RATE).expect("an error rate"))
    };
    let is_given = |option: &str| std::env::args().any(|argument| argument == option);
    if is_given("--between") {
        return between::between(sizing(100_000_000));
    }
    if is_given("--growing") {
        growing("growing to 1M", sizing(1_000_000));
        growing("growing to 100M", sizing(100_000_000));
        if is_given("--large") {
            growing("growing to 1G", sizing(1_000_000_000));
        }
        return;
    }
    if is_given("--fastbloom") {
        let (size, keys) =
            if is_given("--large") { ("1G", 1_000_000_000) } else { ("10M", 10_000_000) };
        let group = format!("test-and-set {size}, beside fastbloom");
        return beside_fastbloom(&group, sizing(keys));
    }
    test_and_set("test-and-set 10M", sizing(10_000_000), true);
    test_and_set("test-and-set 100M", sizing(100_000_000), true);
    threads(sizing(100_000_000));
    wrong_verdicts(sizing(100_000_000));
    if is_given("--large") {
        test_and_set("test-and-set 1G", sizing(1_000_000_000), false);
    }
}

/// Measures the time per key of filters that have nearly as many keys as they are made for, of
/// other sets with the same keys, and of the machine's limit.
fn test_and_set(group: &str, sizing: Sizing, with_all: bool) {
    let (capacity, set) = (sizing.capacity.get(), nearly_full(sizing));
    let filters = KINDS.map(|kind| {
        let mut filter = Filter::new(kind, sizing, 0, 1);
        filter.fill(0..set);
        (kind, RefCell::new(filter))
    });
    // With a billion keys, the memory of the machine does not suffice for more.
    let peers = with_all.then(|| Peers::new(sizing, set));

    let mut bits = Rounds::new(group, "bits/key");
    for (kind, filter) in &filters {
        bits.case(kind.name(), || filter.borrow().bits() as f64 / capacity as f64);
    }
    if let Some(Peers { fastbloom, exact, qfilter, .. }) = &peers {
        bits.case("fastbloom", || fastbloom.bits() as f64 / capacity as f64);
        bits.case("HashSet", || exact.bits() as f64 / capacity as f64);
        bits.case("qfilter", || qfilter.bits() as f64 / capacity as f64);
    }
    bits.run(1);

    let mut rounds = Rounds::new(group, "ns/key");
    for (kind, filter) in filters {
        let filter = Rc::new(filter);
        let crawl = Rc::new(RefCell::new(Crawl::new(set)));
        let (its_filter, its_crawl) = (Rc::clone(&filter), Rc::clone(&crawl));
        rounds.case(kind.name(), move || {
            let keys = fingerprints(&mut its_crawl.borrow_mut());
            per_key(|| its_filter.borrow_mut().judge(&keys))
        });
        rounds.case(format!("{kind}, hashed before"), move || {
            let keys = fingerprints(&mut crawl.borrow_mut());
            let key_hashes = filter.borrow().key_hashes(&keys);
            per_key(|| filter.borrow_mut().judge_key_hashes(&key_hashes))
        });
    }
    if let Some(Peers { fastbloom, in_huge_pages, exact, qfilter }) = peers {
        case(&mut rounds, set, "fastbloom", fastbloom, Fastbloom::judge);
        case(&mut rounds, set, "fastbloom in huge pages", in_huge_pages, Fastbloom::judge);
        case(&mut rounds, set, "HashSet", exact, Exact::judge);
        case(&mut rounds, set, "qfilter", qfilter, Qfilter::judge);
    }
    let limit = Rc::new(RefCell::new(Limit::new(sizing.geometry.bytes())));
    for blocks in [1, 2] {
        let limit = Rc::clone(&limit);
        rounds.case(format!("the machine's limit, {}", of_blocks(blocks)), move || {
            let places = limit.borrow_mut().places(blocks * KEYS);
            per_key(|| limit.borrow_mut().change(&places))
        });
    }
    rounds.run(ROUNDS);
}

/// Measures the kind native and fastbloom for more keys than all sets together have memory for.
fn beside_fastbloom(group: &str, sizing: Sizing) {
    let (capacity, set) = (sizing.capacity.get(), nearly_full(sizing));
    let mut native = Filter::new(Kind::NATIVE, sizing, 0, 1);
    let mut fastbloom = Fastbloom::new(sizing);
    std::thread::scope(|scope| {
        scope.spawn(|| native.fill(0..set));
        fastbloom.fill(0..set);
    });
    let mut bits = Rounds::new(group, "bits/key");
    bits.case("native", || native.bits() as f64 / capacity as f64);
    bits.case("fastbloom", || fastbloom.bits() as f64 / capacity as f64);
    bits.run(1);
    let mut rounds = Rounds::new(group, "ns/key");
    case(&mut rounds, set, "native", native, Filter::judge);
    case(&mut rounds, set, "fastbloom", fastbloom, Fastbloom::judge);
    rounds.run(ROUNDS);
}

/// Returns the number of keys of a filter before a measurement. It then has room for the keys that
/// two cases add.
fn nearly_full(sizing: Sizing) -> u64 {
    sizing.capacity.get() - (2 * (ROUNDS + 1) * KEYS * 3 / 10) as u64
}

/// Adds the case of another set. The set has the keys below `set`.
fn case<S: 'static>(
    rounds: &mut Rounds<'_>,
    set: u64,
    name: &str,
    mut peer: S,
    judge: fn(&mut S, &[Fingerprint]) -> usize,
) {
    let mut crawl = Crawl::new(set);
    rounds.case(name, move || {
        let keys = fingerprints(&mut crawl);
        per_key(|| judge(&mut peer, &keys))
    });
}

fn of_blocks(blocks: usize) -> String {
    format!("{blocks} block{}", if blocks == 1 { "" } else { "s" })
}

/// Measures the keys per second of several filter threads together, each with its own shards.
fn threads(sizing: Sizing) {
    let mut rounds = Rounds::new("threads", "keys/s");
    for kind in KINDS {
        for owners in 1..=processors() {
            let mut filters = Filter::all(kind, sizing, owners);
            let set = sizing.capacity.get() / 2;
            for filter in &mut filters {
                filter.fill(0..set);
            }
            let mut crawl = Crawl::new(set);
            rounds.case(format!("{kind}, {owners}"), move || {
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
    }
    rounds.run(ROUNDS);
}

/// Counts the unseen keys that a full filter reports as seen. Prints this count beside the count
/// that the error rate promises.
fn wrong_verdicts(sizing: Sizing) {
    let capacity = sizing.capacity.get();
    let mut rounds = Rounds::new("wrong verdicts, full", "of 500 million unseen");
    rounds.case("promised", || UNSEEN as f64 * ERROR_RATE);
    for kind in KINDS {
        rounds.case(kind.name(), move || {
            let filters = Filter::all(kind, sizing, processors());
            let count = |mut filter: Filter| {
                filter.fill(0..capacity);
                filter.seen(capacity..capacity + UNSEEN)
            };
            std::thread::scope(|scope| {
                let begin = |filter| scope.spawn(move || count(filter));
                let running: Vec<_> = filters.into_iter().map(begin).collect();
                running.into_iter().map(|thread| thread.join().expect("a count")).sum::<usize>()
            }) as f64
        });
    }
    rounds.run(1);
}

/// Returns the number of processors.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
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
