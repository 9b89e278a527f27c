//! How often the filters of other projects are wrong, and why: they are filled in memory with half
//! of what they are made for, all of it, and up to twice as much, and asked for other keys each
//! time; so is `native` with as many bits. `scripts/layouts` keeps what comes out and makes
//! docs/design/layouts.md of it:
//!
//! ```text
//! cargo bench --bench layouts [-- FILTER]     that filter alone
//! ```
//!
//! A line of JSON is printed for each count, as it is made.

mod causes;
mod count;

use count::Case;
use count::filter::{Filter, Size};
use serde::Serialize;

const MILLION: u32 = 1_000_000;

/// How many unseen keys filters are asked for: a rate of 1e-5 is told to a fifth, one of 1e-4 to
/// a sixteenth.
const UNSEEN: u64 = 10_000_000;

/// What is filled, and what it takes.
#[derive(Serialize)]
struct Taken {
    #[serde(flatten)]
    case: Case,
    size: Size,
}

fn main() {
    // `--bench` comes from cargo.
    let only = std::env::args().skip(1).find(|word| word != "--bench");
    for (name, count) in FILTERS {
        if only.as_ref().is_none_or(|only| only == name) {
            count();
        }
    }
}

/// The filters, by their names.
const FILTERS: [(&str, fn()); 4] = [
    ("pyrebloom", pyrebloom),
    ("scrapy-redis-bloomfilter", scrapy_redis_bloomfilter),
    ("block-cluster", block_cluster),
    ("imooc", imooc),
];

fn pyrebloom() {
    for (capacity, error_rate) in [(MILLION, 1e-2), (10 * MILLION, 1e-4)] {
        count(Filter::Pyrebloom { capacity, error_rate }, capacity.into(), UNSEEN);
    }
    for (keys, asked) in [(10 * MILLION, 1e-4), (10 * MILLION, 1e-6), (100 * MILLION, 1e-8)] {
        print("port", &causes::port(keys, asked));
    }
}

fn scrapy_redis_bloomfilter() {
    // 178,956,970 is what a comment in its code says that it holds.
    for keys in [20_000_000, 178_956_970] {
        count(Filter::ScrapyRedisBloomfilter { bit: 30, hash_number: 6 }, keys, UNSEEN);
    }
    print("hashes", &causes::hashes());
}

fn block_cluster() {
    // For that many keys 15 hashes are the best number.
    for (block_num, keys) in [(256, 50_000_000), (200, 39_000_000)] {
        count(Filter::BlockCluster { bit: 22, hash_number: 15, block_num }, keys, UNSEEN);
    }
}

fn imooc() {
    let million = u64::from(MILLION);
    for (keys, asked) in [(million, 1e-6), (1000 * million, 1e-8), (2000 * million, 1e-7)] {
        print("blocks", &causes::blocks(keys, asked));
    }
    // What its class is made for by default.
    print("block", &causes::fullest_block(1000 * million, 1e-8, 5 * UNSEEN));
    // So empty that no number of unseen keys finds it wrong.
    count(Filter::Imooc { capacity: 10 * million, error_rate: 1e-4 }, 10 * million, UNSEEN / 10);
}

fn count(filter: Filter, made_for: u64, unseen: u64) {
    let case = Case { filter, made_for, unseen };
    print("case", &Taken { case, size: case.size() });
    case.count(|wrong| print("wrong", &wrong));
}

/// Prints a line as soon as it is known: what follows may take minutes.
fn print(group: &str, line: &impl Serialize) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        group: &'a str,
        #[serde(flatten)]
        line: &'a T,
    }
    println!("{}", serde_json::to_string(&Line { group, line }).expect("names and numbers"));
}
