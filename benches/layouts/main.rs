//! Counts the errors of other projects' filters, and shows their causes. Each filter is filled in
//! memory to 50, 100, 150 and 200 % of its capacity. After each fill, it tests keys that were never
//! set. A `native` filter with at most as many bits does the same. `scripts/layouts` keeps the
//! results, and makes docs/design/layouts.md from them:
//!
//! ```text
//! cargo bench --bench layouts                 all filters
//! cargo bench --bench layouts -- FILTER       only this filter, such as pyrebloom
//! ```
//!
//! Prints a line of JSON for each count, as soon as it is made.

mod causes;
mod count;

use count::Case;
use count::filter::{Filter, Size};
use serde::Serialize;

const MILLION: u32 = 1_000_000;

/// Number of unseen keys that a filter tests. With this number, a measured error rate of 1e-5 is
/// accurate to a fifth, and one of 1e-4 to a sixteenth.
const UNSEEN: u64 = 10_000_000;

/// Filter that is filled, with its size.
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

/// Functions that count the filters, by the name of the filter.
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
    // A comment in the code of this filter gives 178,956,970 keys as its limit.
    for keys in [20_000_000, 178_956_970] {
        count(Filter::ScrapyRedisBloomfilter { bit: 30, hash_number: 6 }, keys, UNSEEN);
    }
    print("hashes", &causes::hashes());
}

fn block_cluster() {
    // With these numbers of keys, 15 hashes are best.
    for (block_num, keys) in [(256, 50_000_000), (200, 39_000_000)] {
        count(Filter::BlockCluster { bit: 22, hash_number: 15, block_num }, keys, UNSEEN);
    }
}

fn imooc() {
    let million = u64::from(MILLION);
    for (keys, asked) in [(million, 1e-6), (1000 * million, 1e-8), (2000 * million, 1e-7)] {
        print("blocks", &causes::blocks(keys, asked));
    }
    // This is the default capacity of imooc's class.
    print("block", &causes::fullest_block(1000 * million, 1e-8, 5 * UNSEEN));
    // This filter is nearly empty. No error is expected among so few unseen keys.
    count(Filter::Imooc { capacity: 10 * million, error_rate: 1e-4 }, 10 * million, UNSEEN / 10);
}

fn count(filter: Filter, made_for: u64, unseen: u64) {
    let case = Case { filter, made_for, unseen };
    print("case", &Taken { case, size: case.size() });
    case.count(|wrong| print("wrong", &wrong));
}

/// Prints a line at once, because the next one may take minutes.
fn print(group: &str, line: &impl Serialize) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        group: &'a str,
        #[serde(flatten)]
        line: &'a T,
    }
    println!("{}", serde_json::to_string(&Line { group, line }).expect("names and numbers"));
}
