//! Samples of the newest items, which `urlseen tap` shows.

use std::fs;

use serde_json::Value;

use super::{Crawl, READY, stop, urls};
use crate::util::binary::{Daemon, Output};
use crate::util::wait::{SOON, wait_until};

const RULES: &str = "[[drop]]\nname = 'schemes'\nscheme = '^mailto$'\n\
                     [[pass]]\nname = 'lists'\npath = '^/list/'\n";

/// Starts a daemon with rules.
fn start(crawl: &Crawl) -> Daemon {
    let file = crawl.server.folder().join("rules.toml");
    fs::write(&file, RULES).unwrap();
    let mut daemon = crawl.run(&["--json", "--config"]).arg(&file).start();
    daemon.wait_for_line(READY, SOON);
    daemon
}

/// Returns the fate, the item and the rule of each printed sample.
fn samples(output: &Output) -> Vec<(String, Value, Option<String>)> {
    assert_eq!(output.code(), Some(0), "{output:?}");
    let read = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let rule = sample["rule"].as_str().map(str::to_owned);
        (sample["fate"].as_str().unwrap().to_owned(), sample["item"].clone(), rule)
    };
    output.text().lines().map(read).collect()
}

fn sample(fate: &str, item: &str, rule: Option<&str>) -> (String, Value, Option<String>) {
    (fate.to_owned(), item.into(), rule.map(str::to_owned))
}

#[test]
fn a_tap_shows_the_newest_items_of_each_fate_and_rule() {
    let crawl = Crawl::new();
    let daemon = start(&crawl);
    let unfiltered = r#"{"url": "http://a/1", "dont_filter": true}"#;
    let items = ["http://a/1", "http://a/1#top", "mailto:a", "http://a/list/", "none", unfiltered];
    crawl.push(&items);
    let tap = |arguments: &[&str]| crawl.command("tap", arguments).output();
    let all = [
        sample("unseen", items[0], None),
        sample("seen", items[1], None),
        sample("dropped", items[2], Some("schemes")),
        sample("unfiltered", items[3], Some("lists")),
        sample("rejected", items[4], None),
        sample("unfiltered", items[5], None),
    ];
    assert_eq!(samples(&tap(&["--count=6", "--json"])), all);
    assert_eq!(samples(&tap(&["--count=2", "--json"])), all[..2]);
    let fates = ["--once", "--json", "--fate=dropped", "--fate=unfiltered"];
    assert_eq!(samples(&tap(&fates)), [&all[2..4], &all[5..]].concat());
    assert_eq!(samples(&tap(&["--once", "--json", "--rule=lists"])), all[3..4]);
    let output = tap(&["--once"]);
    let line = |part: &str| {
        let line = output.text().lines().find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("{part}: {output:?}")).to_owned()
    };
    assert!(line("  dropped     mailto:a").ends_with("mailto:a   (the rule \"schemes\")"));
    assert!(line("  rejected    none   (").contains("scheme"));
    // The daemon publishes its counts a moment after the sample.
    wait_until(SOON, "count of the dropped item", || {
        let status = crawl.command("status", &["--json"]).output();
        let status: Value = serde_json::from_str(status.text()).unwrap();
        status["dropped_by_rule"][0]["items"] == 1
    });
    // The sample has a bound for each fate and rule.
    let urls = urls(0, 1000);
    crawl.push(&urls);
    let mut shown = Vec::new();
    wait_until(SOON, "sample of the last item", || {
        shown = samples(&tap(&["--once", "--json"]));
        shown[shown.len() - 1].1 == urls[999].as_str()
    });
    let unseen = shown.iter().filter(|(fate, ..)| fate == "unseen").count();
    assert_eq!((unseen, shown.len()), (20, 25), "{shown:?}");
    stop(daemon);
    let refused = tap(&["--once"]);
    assert_eq!(refused.code(), Some(3), "{refused:?}");
}

#[test]
fn a_tap_follows_the_daemon() {
    let crawl = Crawl::new();
    let daemon = start(&crawl);
    let tap = crawl.command("tap", &["--fate=dropped", "--count=3", "--json"]).start();
    for number in 0..3 {
        crawl.push(&[format!("mailto:{number}"), format!("http://a/{number}")]);
        crawl.wait_for_sink(number + 1);
    }
    let expected =
        [0, 1, 2].map(|number| sample("dropped", &format!("mailto:{number}"), Some("schemes")));
    assert_eq!(samples(&tap.output(SOON)), expected);
    stop(daemon);
}

#[test]
fn a_filter_in_redis_has_no_tap() {
    let crawl = Crawl::new().set("filter.place=redis");
    let refused = crawl.command("tap", &["--once"]).output();
    assert!(refused.code() == Some(2) && refused.stderr.contains("has no socket"), "{refused:?}");
}
