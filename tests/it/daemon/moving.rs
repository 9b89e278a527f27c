//! Moving a native filter between a storage folder and Redis.

use redis::Commands;

use super::{Crawl, urls};

/// Makes a crawl with a native filter in its folder.
fn native() -> Crawl {
    Crawl::new().set("filter.kind=native")
}

/// Returns the strings of the filter in Redis, by shard.
fn strings(crawl: &Crawl) -> Vec<Vec<u8>> {
    let mut connection = crawl.connection();
    (0..256).map(|shard| connection.get(format!("demo:filter:{shard:02x}")).unwrap()).collect()
}

/// If two filters have the same seed, the same additions set the same bits in memory and in Redis.
#[test]
fn bits_are_the_same_in_both_places() {
    let here = native().set("filter.seed=7");
    here.push(&urls(0, 3000));
    here.drain();
    assert_eq!(here.command("export", &["--to-redis"]).output().code(), Some(0));
    let there = native().set("filter.seed=7").set("filter.place=redis");
    there.push(&urls(0, 3000));
    there.drain();
    // A string in Redis ends with the last block that was set.
    for (shard, (here, there)) in strings(&here).iter().zip(strings(&there)).enumerate() {
        assert!(here.starts_with(&there), "shard {shard}");
        assert!(here[there.len()..].iter().all(|&byte| byte == 0), "shard {shard}");
    }
    let ones = |all: Vec<Vec<u8>>| all.concat().iter().map(|it| it.count_ones()).sum::<u32>();
    assert!(ones(strings(&here)) > 3000 * 10);
}
