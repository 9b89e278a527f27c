//! The crate as a library: its filters in Redis beside others, and its promises to programs.

mod api;
mod beside;
mod consumer;
mod cutting;
mod features;
mod redis;
mod tasks;

use urlseen::{FilterKind, RedisOptions};

/// Every kind that Redis holds, small, with its settings in a configuration.
const LAYOUTS: [(FilterKind, &[&str]); 9] = [
    (
        FilterKind::Native { capacity: 10_000, error_rate: 1e-9 },
        &["filter.kind=native", "filter.capacity=10000", "filter.error_rate=1e-9"],
    ),
    (
        FilterKind::Imooc { capacity: 10_000, error_rate: 1e-9 },
        &["filter.kind=imooc", "filter.capacity=10000", "filter.error_rate=1e-9"],
    ),
    (
        FilterKind::PyreBloom { capacity: 10_000, error_rate: 1e-9 },
        &["filter.kind=pyrebloom", "filter.capacity=10000", "filter.error_rate=1e-9"],
    ),
    (
        FilterKind::Luw2007 { capacity: 10_000, error_rate: 1e-9 },
        &["filter.kind=luw2007-bloomfilter", "filter.capacity=10000", "filter.error_rate=1e-9"],
    ),
    (
        FilterKind::ScrapyRedisBloomFilter { bit: 20, hash_number: 12 },
        &["filter.kind=scrapy-redis-bloomfilter", "filter.bit=20", "filter.hash_number=12"],
    ),
    (
        FilterKind::BlockCluster { bit: 20, hash_number: 12, block_num: 3 },
        &[
            "filter.kind=scrapy-redis-bloomfilter-block-cluster",
            "filter.bit=20",
            "filter.hash_number=12",
            "filter.block_num=3",
        ],
    ),
    (
        FilterKind::Redisson { capacity: 10_000, error_rate: 1e-9 },
        &["filter.kind=redisson", "filter.capacity=10000", "filter.error_rate=1e-9"],
    ),
    (
        FilterKind::RedisLuaScaling { capacity: 100, error_rate: 1e-9 },
        &["filter.kind=redis-lua-scaling", "filter.capacity=100", "filter.error_rate=1e-9"],
    ),
    (FilterKind::ScrapyRedis, &["filter.kind=scrapy-redis"]),
];

/// Kind for tests about something else.
const NATIVE: FilterKind = LAYOUTS[0].0;

/// Digests in hex, which every kind accepts.
fn digests(range: std::ops::Range<u32>) -> Vec<String> {
    let digest = |number: u32| format!("{:08x}", number.wrapping_mul(0x9e37_79b9)).repeat(5);
    range.map(digest).collect()
}

/// Options that give up soon.
fn impatient() -> RedisOptions {
    RedisOptions { retries: 1, ..RedisOptions::default() }
}
