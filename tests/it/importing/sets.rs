//! Imports from sets of scrapy-redis.

use super::{Crawl, SET, fingerprints, urls};

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
