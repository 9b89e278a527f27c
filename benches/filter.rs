//! Measures filters in memory beside other sets, with the keys of an imitated crawl: of ten keys,
//! seven were seen before.
//!
//! ```text
//! filter filter KEYS ROUNDS    test-and-set in nearly full filters for this number of keys
//! filter growth KEYS           times of a batch while a filter grows a hundredfold to KEYS keys
//! ```
//!
//! Prints lines of JSON: `{"group", "case", "unit", "values"}`.

use std::collections::HashSet;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use fastbloom::BloomFilter;
use memmap2::{Advice, MmapMut};
use serde_json::{Value, json};
use urlseen_filter::{FilterKind, KeyHash, KeyHasher, Kind, Verdict};
use urlseen_fingerprint::Fingerprint;

const ERROR_RATE: f64 = 1e-8;
/// Number of keys that are tested together, and then set together.
const BATCH: usize = 1000;
/// Number of keys in a round.
const ROUND: usize = 500_000;
/// Number of intervals of the plot of a growing filter.
const INTERVALS: usize = 50;
/// Names of the figures of a growing filter, and their thousandths of the sorted times.
const FIGURES: [(&str, usize); 3] = [("p99.9", 999), ("median", 500), ("longest", 1000)];

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["filter", keys, rounds] => filter(number(keys), number(rounds)),
        ["growth", keys] => growth(number(keys)),
        _ => panic!("filter filter KEYS ROUNDS, or filter growth KEYS"),
    }
}

/// Prints the value of each round of a case.
fn print(group: &str, case: &str, unit: &str, values: &Value) {
    println!("{}", json!({ "group": group, "case": case, "unit": unit, "values": values }));
}

/// Measures all sets in turn, round after round, after they were filled nearly to `keys` keys.
fn filter(keys: u64, rounds: u64) {
    let added = (rounds + 1) * ROUND as u64 * 4 / 10;
    let mut crawl = Crawl { asked: 0, set: keys.checked_sub(added).expect("more keys") };
    let count = usize::try_from(keys).expect("64 bits");
    let fastbloom = BloomFilter::with_false_pos(ERROR_RATE);
    let qfilter = qfilter::Filter::new(keys, ERROR_RATE);
    let mut sets: Vec<(&str, Box<dyn Set>)> = vec![
        ("urlseen, two-choice", Box::new(Urlseen::new(Kind::TWO_CHOICE, keys, keys))),
        ("urlseen, native", Box::new(Urlseen::new(Kind::NATIVE, keys, keys))),
        ("fastbloom", Box::new(Fastbloom(fastbloom.seed(&1).expected_items(count)))),
        ("qfilter", Box::new(Qfilter(qfilter.expect("a size that qfilter has")))),
        ("HashSet of u64", Box::new(Exact::default())),
    ];
    std::thread::scope(|scope| {
        for (_, set) in &mut sets {
            scope.spawn(|| set.fill(0..crawl.set));
        }
    });
    let bytes = sets[0].1.bytes();
    sets.push(("the machine's limit", Box::new(Limit::new(bytes))));
    let group = format!("{} million keys", keys as f64 / 1e6);
    let mut times = vec![Vec::new(); sets.len()];
    for round in 0..=rounds {
        let keys = crawl.keys(ROUND);
        for ((_, set), times) in sets.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            for batch in keys.chunks(BATCH) {
                black_box(set.judge(batch));
            }
            // The first round warms up.
            if round > 0 {
                times.push(begun.elapsed().as_secs_f64() * 1e9 / ROUND as f64);
            }
        }
    }
    for ((case, set), times) in sets.iter().zip(times) {
        print(&group, case, "ns/key", &json!(times));
        print(&group, case, "bits/key", &json!([set.bytes() as f64 * 8.0 / keys as f64]));
    }
}

/// Measures each batch of the same crawl with three sets in turn: a filter that grows, a filter
/// that had its final size from the start, and a hash table that grows.
fn growth(keys: u64) {
    let mut sets: [(&str, Box<dyn Set>); 3] = [
        ("urlseen, growing", Box::new(Urlseen::new(Kind::TWO_CHOICE, keys / 100, keys))),
        ("urlseen, of the final size", Box::new(Urlseen::new(Kind::TWO_CHOICE, keys, keys))),
        ("HashSet of u64, growing", Box::new(Exact::default())),
    ];
    let mut crawl = Crawl { asked: 0, set: keys / 100 };
    for (_, set) in &mut sets {
        set.fill(0..crawl.set);
    }
    let (mut counts, mut times, mut bits) = (Vec::new(), [const { Vec::new() }; 3], [0.0; 3]);
    while crawl.set < keys {
        let batch = crawl.keys(BATCH);
        counts.push(crawl.set);
        for (((_, set), times), bits) in sets.iter_mut().zip(&mut times).zip(&mut bits) {
            let begun = Instant::now();
            black_box(set.judge(&batch));
            times.push(begun.elapsed().as_secs_f64() * 1e6);
            *bits += 8.0 * set.bytes() as f64 / crawl.set as f64;
        }
    }
    let group = format!("{} to {} million keys", keys as f64 / 1e8, keys as f64 / 1e6);
    let interval = counts.len().div_ceil(INTERVALS);
    let ends: Vec<_> = counts.chunks(interval).filter_map(<[u64]>::last).collect();
    print("samples", "keys", "keys", &json!(ends));
    for (((case, _), times), bits) in sets.iter().zip(&times).zip(bits) {
        for ((figure, _), value) in FIGURES.iter().zip(quantiles(times)) {
            print(&group, case, &format!("{figure}, µs/batch"), &json!([value]));
        }
        print(&group, case, "mean bits/key", &json!([bits / counts.len() as f64]));
        let longest: Vec<_> = times.chunks(interval).map(|times| quantiles(times)[2]).collect();
        print("samples", case, "longest", &json!(longest));
    }
}

/// Returns the figures of these times.
fn quantiles(times: &[f64]) -> [f64; 3] {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    FIGURES.map(|(_, thousandth)| sorted[(sorted.len() - 1) * thousandth / 1000])
}

/// Position in an endless sequence of keys.
struct Crawl {
    asked: u64,
    /// Number of keys that were given out. The sets have all of them.
    set: u64,
}

impl Crawl {
    /// Returns the next keys: seen ones, drawn evenly from all given keys, and new ones.
    fn keys(&mut self, count: usize) -> Vec<Fingerprint> {
        let mut key = || {
            self.asked += 1;
            let drawn = mixed(self.asked);
            let is_new = drawn % 10 >= 7;
            self.set += u64::from(is_new);
            if is_new { self.set - 1 } else { drawn / 10 % self.set }
        };
        (0..count).map(|_| fingerprint(key())).collect()
    }
}

/// Output of SplitMix64 at this position.
fn mixed(number: u64) -> u64 {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Returns 20 bytes that look random.
fn fingerprint(key: u64) -> Fingerprint {
    let mut raw = [0; 20];
    raw[..8].copy_from_slice(&mixed(key).to_le_bytes());
    raw[8..16].copy_from_slice(&mixed(!key).to_le_bytes());
    Fingerprint::Raw20(raw)
}

/// Returns the first 8 bytes of a key. Peers use them as the key's hash: no hash is cheaper.
fn word(key: &Fingerprint) -> u64 {
    u64::from_le_bytes(*key.as_bytes().first_chunk().expect("8 bytes of 20"))
}

/// Set of keys that is measured.
trait Set: Send {
    /// Tests keys and sets the unseen ones. Returns the number of unseen keys.
    fn judge(&mut self, keys: &[Fingerprint]) -> usize;

    fn bytes(&self) -> u64;

    fn fill(&mut self, keys: Range<u64>) {
        let end = keys.end;
        for first in keys.step_by(BATCH) {
            let batch: Vec<_> = (first..end.min(first + BATCH as u64)).map(fingerprint).collect();
            self.judge(&batch);
        }
    }
}

/// Filter of urlseen, called in the same way as the daemon's engine calls it.
struct Urlseen {
    hasher: KeyHasher,
    kind: Box<dyn FilterKind>,
}

impl Urlseen {
    /// Makes a filter with room for `begin` keys, which can grow to `keys` keys.
    fn new(kind: Kind, begin: u64, keys: u64) -> Self {
        let parameters = kind.read(&|name| match name {
            "filter.capacity" => Some(begin.to_string()),
            "filter.grow_to" => Some(keys.to_string()),
            "filter.error_rate" => Some(ERROR_RATE.to_string()),
            "filter.seed" => Some("1".to_owned()),
            _ => None,
        });
        let parameters = parameters.expect("parameters of the kind");
        let kind = parameters.build().expect("memory");
        Self { hasher: parameters.hasher(), kind }
    }
}

impl Set for Urlseen {
    fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let hashes: Vec<KeyHash> = keys.iter().map(|key| self.hasher.key_hash(key)).collect();
        let mut verdicts = Vec::new();
        self.kind.test(&hashes, &mut verdicts);
        let judged = hashes.into_iter().zip(verdicts);
        let unseen: Vec<KeyHash> = judged
            .filter_map(|(hash, verdict)| (verdict == Verdict::Unseen).then_some(hash))
            .collect();
        self.kind.insert(&unseen).expect("memory");
        unseen.len()
    }

    fn bytes(&self) -> u64 {
        self.kind.gauge().fill().bytes
    }
}

struct Fastbloom(BloomFilter);

impl Set for Fastbloom {
    fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let mut unseen = 0;
        for hash in keys.iter().map(word) {
            if !self.0.contains_hash(hash) {
                self.0.insert_hash(hash);
                unseen += 1;
            }
        }
        unseen
    }

    fn bytes(&self) -> u64 {
        self.0.num_bits() as u64 / 8
    }
}

/// Quotient filter of the crate `qfilter`.
struct Qfilter(qfilter::Filter);

impl Set for Qfilter {
    fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let mut insert = |key| self.0.insert_fingerprint(false, word(key)).expect("room");
        keys.iter().filter(|key| insert(key)).count()
    }

    fn bytes(&self) -> u64 {
        self.0.memory_usage() as u64
    }
}

/// Hash table of the standard library.
#[derive(Default)]
struct Exact(HashSet<u64>);

impl Set for Exact {
    fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        keys.iter().filter(|key| self.0.insert(word(key))).count()
    }

    /// Returns the size of the table. Its number of places is a power of two, of which 7 of 8 are
    /// used at most. A place has a key and a byte that marks it as used.
    fn bytes(&self) -> u64 {
        (self.0.capacity() as u64 * 8 / 7).next_power_of_two() * 9
    }
}

/// Memory of which each key changes two random cache lines, as in a filter, with nothing else to
/// do. It is as large as a filter, and in huge pages.
struct Limit(MmapMut);

impl Limit {
    fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("64 bits");
        let mut memory = MmapMut::map_anon(bytes).expect("memory");
        memory.advise(Advice::HugePage).expect("a system with huge pages");
        memory.fill(1);
        Self(memory)
    }
}

impl Set for Limit {
    fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        let lines = (self.0.len() / 64) as u64;
        for hash in keys.iter().map(word) {
            for hash in [hash, hash.rotate_left(32)] {
                let line = usize::try_from(hash % lines).expect("64 bits");
                self.0[64 * line] ^= 1;
            }
        }
        0
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}
