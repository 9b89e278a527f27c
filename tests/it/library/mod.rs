//! The library: filters in Redis and consumers.

mod beside;
mod consumer;
mod cutting;
pub(crate) mod listening;
mod redis;
mod tasks;

use urlseen::{FilterSpec, Kind, RedisOptions};

/// Settings of a small filter in Redis, for each kind. A filter of the kind `imooc` takes half a
/// gigabyte, so only a test of the daemon has one.
const KINDS: [&[&str]; 8] = [
    &["filter.kind=native", "filter.capacity=10000", "filter.error_rate=1e-9"],
    &["filter.kind=pyrebloom", "filter.capacity=10000", "filter.error_rate=1e-9"],
    &["filter.kind=luw2007-bloomfilter", "filter.capacity=10000", "filter.error_rate=1e-9"],
    &["filter.kind=scrapy-redis-bloomfilter", "filter.bit=20", "filter.hash_number=12"],
    &[
        "filter.kind=scrapy-redis-bloomfilter-block-cluster",
        "filter.bit=20",
        "filter.hash_number=12",
        "filter.block_num=3",
    ],
    &["filter.kind=redisson", "filter.capacity=10000", "filter.error_rate=1e-9"],
    &["filter.kind=redis-lua-scaling", "filter.capacity=100", "filter.error_rate=1e-9"],
    &["filter.kind=scrapy-redis"],
];

/// Returns the specs of these filters, each with its settings.
fn kinds() -> impl Iterator<Item = (FilterSpec, &'static [&'static str])> {
    KINDS.into_iter().map(|settings| (spec(settings), settings))
}

fn spec(settings: &[&str]) -> FilterSpec {
    let set = |spec: FilterSpec, setting: &&str| {
        let (name, value) = setting.split_once('=').unwrap();
        let number = || value.parse().unwrap();
        match name {
            "filter.kind" => FilterSpec::new(value.parse::<Kind>().unwrap()),
            "filter.capacity" => spec.capacity(value.parse().unwrap()),
            "filter.error_rate" => spec.error_rate(value.parse().unwrap()),
            "filter.bit" => spec.bit(number()),
            "filter.hash_number" => spec.hash_number(number()),
            "filter.block_num" => spec.block_num(number()),
            _ => panic!("{name} is no setting of a filter"),
        }
    };
    settings.iter().fold(FilterSpec::new(Kind::NATIVE), set)
}

/// Returns the spec of a filter for tests in which the kind does not matter.
fn native() -> FilterSpec {
    spec(KINDS[0])
}

/// Returns keys of hex digits, which every kind accepts.
fn digests(range: std::ops::Range<u32>) -> Vec<String> {
    let digest = |number: u32| format!("{:08x}", number.wrapping_mul(0x9e37_79b9)).repeat(5);
    range.map(digest).collect()
}

/// Returns options with which a call fails soon.
fn impatient() -> RedisOptions {
    RedisOptions { retries: 1, ..RedisOptions::default() }
}
