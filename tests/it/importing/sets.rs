//! Imports from sets of scrapy-redis.

use super::{Crawl, SET, fingerprints, urls};

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
