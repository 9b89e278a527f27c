//! Messages about a full filter.

use super::shared::{LAYOUTS, crawl};
use super::{Crawl, SINK, urls};

/// The last item brings the fill to a level with a warning. So only the check at the end of the run
/// can notice this level.
#[test]
fn a_drain_reports_the_fill_after_its_last_item() {
    for (items, percent) in [(799, None), (800, Some(80))] {
        let crawl = Crawl::new()
            .set("filter.kind=native")
            .set("filter.capacity=1000")
            .set("source.batch=10_000");
        crawl.push(&urls(0, items));
        let summary = crawl.drain();
        assert_eq!(summary.counts(), (items, [items, 0, 0, 0]));
        // The number is an estimate from the share of set bits.
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

/// If the daemon first checks the fill at 566 %, the warning says 566 %, not a fixed lower level.
#[test]
fn a_warning_has_the_real_fill() {
    let crawl = Crawl::new()
        .set("filter.kind=native")
        .set("filter.capacity=100")
        .set("source.batch=10_000");
    crawl.push(&urls(0, 566));
    let summary = crawl.drain();
    assert!(
        summary.stderr.contains("566 fingerprints, 566 % of what it is made for"),
        "{summary:?}"
    );
}

/// Follows the advice of the warning, and of the message that ends the run.
#[test]
fn the_advice_in_messages_about_a_full_filter_works() {
    let full = |crawl: Crawl| crawl.set("filter.capacity=1000").set("filter.when_full=stop");
    for shared in [false, true] {
        let crawl =
            full(if shared { crawl(LAYOUTS[0]) } else { Crawl::new().set("filter.kind=native") });
        // With this number of items, the estimated number of fingerprints certainly reaches the
        // capacity.
        crawl.push(&urls(0, 1200));
        let output = crawl.run(&[]).output();
        assert_eq!(output.code(), Some(3), "{output:?}");
        // The advice is in one or two warnings, and in the message at the end.
        assert!(output.stderr.matches("urlseen storage reset").count() >= 2, "{output:?}");
        assert!(output.stderr.contains("all that was seen is emitted again"), "{output:?}");

        let going_on = crawl.set("filter.when_full=warn");
        going_on.push(&urls(700, 600));
        assert_eq!(going_on.drain().code, Some(0));
        assert_eq!(going_on.len(SINK), 1300);

        let larger = going_on.set("filter.capacity=5000").set("filter.when_full=stop");
        assert_eq!(
            larger.run(&["--drain"]).output().code(),
            Some(2),
            "the filter cannot be made larger"
        );
        assert_eq!(larger.command("storage reset", &["--yes"]).output().code(), Some(0));
        larger.push(&urls(0, 1500));
        let summary = larger.drain();
        assert_eq!(summary.counts(), (1500, [1500, 0, 0, 0]), "{summary:?}");
        assert!(!summary.stderr.contains("what it is made for"), "{summary:?}");
    }
}

/// Tests two remedies: an import of the seen URLs into a new filter, and a kind that grows.
#[test]
fn a_full_filter_can_be_replaced_by_an_import_or_by_a_kind_that_grows() {
    let crawl = Crawl::new().set("filter.kind=native").set("filter.capacity=1000");
    crawl.push(&urls(0, 1500));
    let warned = crawl.drain().stderr;
    for words in ["urlseen import", "filter.kind = \"two-choice\""] {
        assert!(warned.contains(words), "no {words:?} in {warned}");
    }
    let larger = crawl.set("filter.capacity=5000");
    assert_eq!(larger.command("storage reset", &["--yes"]).output().code(), Some(0));
    let list = crate::util::binary::urlseen(["fingerprint"]).stdin(urls(0, 1500).join("\n") + "\n");
    let imported = larger.command("import", &[]).stdin(list.output().text()).output();
    assert_eq!(imported.code(), Some(0), "{imported:?}");
    larger.push(&urls(0, 1600));
    assert_eq!(larger.drain().count("unseen"), 100);

    let growing = larger.set("filter.capacity=1000").set("filter.kind=two-choice");
    assert_eq!(growing.command("storage reset", &["--yes"]).output().code(), Some(0));
    growing.push(&urls(0, 4000));
    assert_eq!(growing.drain().counts(), (4000, [4000, 0, 0, 0]));
}

/// A warning at the start reports that RedisBloom's hash functions, not the number of bits, limit
/// the error rate of this filter.
#[test]
fn a_warning_names_a_filter_of_redisbloom_that_cannot_keep_its_error_rate() {
    let crawl = Crawl::new().set("filter.kind=redisbloom").set("filter.capacity=300");
    crawl.push(&urls(0, 300));
    let summary = crawl.set("filter.error_rate=1e-10").drain();
    assert!(summary.stderr.contains("RedisBloom's hashes cause most errors"), "{summary:?}");
    let rate = summary.values["error_rate"].as_f64().unwrap();
    assert!((1e-6..1e-4).contains(&rate), "{rate}");
}

#[test]
fn a_two_choice_filter_warns_or_stops_after_it_has_grown() {
    let crawl = Crawl::new()
        .set("filter.kind=two-choice")
        .set("filter.capacity=100")
        .set("filter.grow_to=1000");
    crawl.push(&urls(0, 700));
    let summary = crawl.drain();
    assert_eq!(summary.counts(), (700, [700, 0, 0, 0]));
    assert!(!summary.stderr.contains("what it is made for"), "{summary:?}");
    // The capacity is only a first size, and may change.
    let crawl = crawl.set("filter.capacity=500");
    crawl.push(&urls(0, 1200));
    let summary = crawl.drain();
    assert_eq!(summary.counts(), (1200, [500, 700, 0, 0]));
    let warning = "the filter has 1200 fingerprints, 120 % of what it is made for";
    assert!(summary.stderr.contains(warning), "{summary:?}");
    let stopping = crawl.set("filter.when_full=stop");
    stopping.push(&urls(0, 1300));
    let output = stopping.run(&[]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("the filter holds 1000 fingerprints or more"), "{output:?}");
    let another = stopping.set("filter.grow_to=2000").run(&["--drain"]).output();
    assert_eq!(another.code(), Some(2), "{another:?}");
    assert!(another.stderr.contains("filter.grow_to"), "{another:?}");
}
