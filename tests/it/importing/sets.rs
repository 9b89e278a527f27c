//! Imports from sets of scrapy-redis.

use super::{Crawl, SET, fingerprints, hex, raw, urls};

#[test]
fn a_crawl_skips_fingerprints_imported_from_a_set() {
    let crawl = Crawl::new();
    crawl.add(&fingerprints(&urls(0..10_000)));
    crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]).check([10_000, 10_000, 0, 0]);
    assert_eq!(crawl.crawl(&urls(0..12_000)), urls(10_000..12_000));
    // The crawl has added more URLs to the filter. A later import also adds fingerprints, and each
    // of them counts once.
    crawl.add(&fingerprints(&urls(12_000..13_000)));
    let again = crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]);
    again.check([11_000, 1_000, 10_000, 0]);
    assert_eq!(again.summary["keys"], 13_000);
    assert_eq!(crawl.crawl(&urls(0..13_001)), urls(13_000..13_001));
    assert_eq!(crawl.server.cli(&["scard", SET]), "11000", "the set is left as it was");
}

/// After a restart, Redis has no state of the crawl. The imported fingerprints still count.
#[test]
fn imported_fingerprints_remain_if_redis_goes_back() {
    let mut crawl = Crawl::new();
    crawl.server.cli(&["save"]);
    crawl.add(&fingerprints(&urls(0..100)));
    crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]).check([100, 100, 0, 0]);
    crawl.server.restart();
    assert_eq!(crawl.crawl(&urls(0..101)), urls(100..101));
}

/// Redis may return a member twice while a set grows or shrinks.
#[test]
fn a_fingerprint_that_comes_twice_counts_once() {
    let crawl = Crawl::new();
    let members: Vec<String> = raw(0..30_000).map(|digest| hex(&digest)).collect();
    crawl.add(&members);
    let upper: Vec<String> = members[..100].iter().map(|member| member.to_uppercase()).collect();
    crawl.add(&upper);
    let imported = crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]);
    let [read, new, seen, bad] = imported.counts();
    // A fingerprint with upper-case digits is the same fingerprint.
    assert_eq!((read, new, bad), (30_100, 30_000, 0));
    assert_eq!(seen, 100);
    assert_eq!(imported.summary["keys"], 30_000);
}

#[test]
fn invalid_members_are_reported_and_all_others_are_imported() {
    let crawl = Crawl::new();
    let digests: Vec<String> = raw(0..1000).map(|digest| hex(&digest)).collect();
    crawl.add(&digests);
    let others: Vec<String> = (0..50).map(|number| format!("http://\x1b{number}")).collect();
    crawl.add(&others);
    let imported = crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]);
    assert_eq!((imported.counts(), imported.code), ([1000, 1000, 0, 50], Some(1)));
    let named = imported.summary["bad_first"].as_array().unwrap();
    assert_eq!(named.len(), 10);
    assert_eq!(named[0]["source"], "a member of the set demo:dupefilter");
    assert!(imported.stderr.contains("a member of the set demo:dupefilter: not 32, 40 or 64 hex"));
    assert!(imported.stderr.contains("'http://\\x1b"), "{}", imported.stderr);
    assert!(imported.stderr.ends_with("… and 40 more that are not fingerprints\n"));
}

#[test]
fn small_sets_are_read_completely() {
    let crawl = Crawl::new();
    // Redis stores such a set as a list, and returns it at once.
    crawl.add(&raw(0..3).map(|digest| hex(&digest)).collect::<Vec<_>>());
    crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]).check([3, 3, 0, 0]);
    crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]).check([3, 0, 3, 0]);
}
