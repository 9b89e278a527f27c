//! What is said when the filter is full.

use super::{Crawl, urls};

/// The last item crosses the level, so that only the look at the very end can see it.
#[test]
fn a_drain_tells_how_full_the_filter_is_to_the_last_item() {
    for (items, percent) in [(799, None), (800, Some(80)), (1000, Some(100)), (1500, Some(150))] {
        let crawl = Crawl::new().set("filter.capacity=1000").set("source.batch=10_000");
        crawl.push(&urls(0, items));
        let summary = crawl.drain();
        assert_eq!(summary.counts(), (items, [items, 0, 0, 0]));
        // An estimate, from the share of bits that are set.
        assert!(summary.count("keys").abs_diff(items) <= items / 20, "{summary:?}");
        let warnings: Vec<_> =
            summary.stderr.lines().filter(|line| line.contains("what it is made for")).collect();
        let last = percent.map(|percent| format!("has {items} fingerprints, {percent} % of"));
        match (warnings.last(), last) {
            (None, None) => {}
            (Some(warning), Some(last)) => assert!(warning.contains(&last), "{warnings:?}"),
            (_, last) => panic!("{last:?} was expected: {warnings:?}"),
        }
    }
}
