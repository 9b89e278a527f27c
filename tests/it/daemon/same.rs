//! Rules by which different URLs are the same, in whole crawls.

use std::path::PathBuf;

use super::{Crawl, READY, REJECTED, SINK, Summary};
use crate::util::wait::SOON;

const RULES: &str = r"
[fingerprint]
drop_tracking = '2026-11'

[[same]]
host = '(^|\.)a\.x$'
drop_params = ['sid']
fold = ['scheme', 'www', 'trailing-slash']
";

/// Writes a configuration file with these rules.
fn file(crawl: &Crawl, rules: &str) -> PathBuf {
    let file = crawl.server.folder().join("rules.toml");
    std::fs::write(&file, rules).unwrap();
    file
}

#[test]
fn urls_that_are_the_same_pass_once_and_byte_for_byte() {
    for place in ["filter.place=local", "filter.place=redis"] {
        let crawl = Crawl::new().set(place);
        let file = file(&crawl, RULES);
        let passes = [
            "HTTPS://www.a.x/p/?sid=1&utm_source=b#f",
            "http://a.x/p?b=1",
            r#"{"url": "http://b.x/p/?gclid=1", "meta": {"c": [1]}}"#,
            "http://b.x/p",
            r#"{"url": "http://a.x/p", "fingerprint": "00112233445566778899aabbccddeeff00112233"}"#,
            r#"{"url": "http://www.a.x/p", "method": "POST"}"#,
        ];
        let same = [
            "http://a.x/p",
            "https://a.x:443/p?sid=2&fbclid=3",
            "http://www.a.x/p?b=1&sid=",
            "http://b.x/p/?msclkid=2",
            r#"{"url": "https://a.x/p/?sid=4", "method": "post"}"#,
        ];
        crawl.push(&passes);
        crawl.push(&same);
        let run = crawl.run(&["--drain", "--json", "--config"]).arg(&file).output();
        let summary = Summary::of(run);
        assert_eq!(summary.counts(), (11, [6, 5, 0, 0]), "{place}");
        assert_eq!(summary.count("own_fingerprints"), 1, "{place}");
        assert_eq!(crawl.list(SINK), passes.map(str::as_bytes), "{place}");
        assert_eq!(crawl.len(REJECTED), 0);
    }
}

#[test]
fn a_tap_shows_the_url_that_an_item_equals() {
    let crawl = Crawl::new();
    let mut daemon = crawl.run(&["--config"]).arg(file(&crawl, RULES)).start();
    daemon.wait_for_line(READY, SOON);
    crawl.push(&["http://www.a.x/p/?sid=1", "http://a.x/p", "http://b.x/"]);
    let lines = crawl.command("tap", &["--count=3"]).output();
    let lines = lines.text().lines().map(|line| line.split_once("seen ").unwrap().1.trim());
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    let same = "http://www.a.x/p/?sid=1   (the same as http://a.x/p)";
    assert_eq!(lines, ["http://a.x/p", "http://b.x/", same]);
}

#[test]
fn a_filter_made_by_other_rules_is_refused_with_both_versions() {
    let fold = r#""fold":["scheme","www","trailing-slash"]"#;
    let shown = format!(r#"[{{"host":"(^|\\.)a\\.x$","drop_params":["sid"],{fold}}}]"#);
    let other = "[[same]]\nfold = ['www']\n";
    for place in ["filter.place=local", "filter.place=redis"] {
        let crawl = Crawl::new().set(place);
        let run =
            |rules: &str| crawl.run(&["--drain", "--config"]).arg(file(&crawl, rules)).output();
        assert_eq!(run(RULES).code(), Some(0), "{place}");
        for (rules, wanted) in [("", "[]"), (other, r#"[{"fold":["www"]}]"#)] {
            let refused = run(rules);
            assert_eq!(refused.code(), Some(2), "{place}: {refused:?}");
            let words = ["fingerprint.drop_tracking", "none", "2026-11", "fingerprint.same"];
            for words in words.into_iter().chain([&*shown, wanted]) {
                assert!(refused.stderr.contains(words), "{place}, {words}: {refused:?}");
            }
        }
        assert_eq!(run(RULES).code(), Some(0), "{place}");
    }
}

#[test]
fn partitions_of_a_crawl_must_have_the_same_rules() {
    let crawl = Crawl::new().set("partitions.count=2");
    let run = |rules: &str| crawl.run(&["--drain", "--config"]).arg(file(&crawl, rules)).output();
    let [one, other] = ["fold = ['www']", "fold = ['case']"].map(|it| format!("[[same]]\n{it}\n"));
    assert_eq!(run(&one).code(), Some(0));
    let refused = run(&other);
    assert_eq!(refused.code(), Some(3), "{refused:?}");
    let says = r#"has same [{"fold":["www"]}], and this configuration has [{"fold":["case"]}]"#;
    assert!(refused.stderr.contains(says), "{refused:?}");
}

#[test]
fn a_filter_goes_on_with_other_rules_and_what_it_has_seen() {
    for [kind, later] in [["native", "native"], ["native", "two-choice"], ["exact", "exact"]] {
        let crawl = Crawl::new().set("filter.capacity=1000").set("filter.error_rate=1e-6");
        let [kind, later] = [kind, later].map(|it| format!("--set=filter.kind={it}"));
        let run = |kind: &str, rules: &str| {
            crawl.run(&["--drain", "--json", kind, "--config"]).arg(file(&crawl, rules)).output()
        };
        crawl.push(&["http://www.a.x/p?sid=1", "http://b.x/", "http://a.x/q"]);
        assert_eq!(Summary::of(run(&kind, "")).counts(), (3, [3, 0, 0, 0]), "{kind}");
        let refused = run(&later, RULES);
        assert_eq!(refused.code(), Some(2), "{kind}, {later}");
        assert!(refused.stderr.contains("urlseen storage convert --rules"), "{refused:?}");
        let is_converted = kind != later;
        let first = if is_converted { "over a frozen" } else { "has the rules of the config" };
        for says in [first, "already has these rules"] {
            let path = file(&crawl, RULES).display().to_string();
            let arguments = ["--rules", &later, "--config", &path];
            let converted = crawl.command("storage convert", &arguments).output();
            assert_eq!(converted.code(), Some(0), "{converted:?}");
            assert!(converted.text().contains(says), "{converted:?}");
        }
        crawl.push(&["http://a.x/p", "http://b.x/", "http://a.x/q", "http://www.a.x/q"]);
        let summary = Summary::of(run(&later, RULES));
        assert_eq!(summary.counts(), (4, [1, 3, 0, 0]), "{kind}, {later}");
        crawl.push(&["https://www.a.x/p/?sid=2"]);
        assert_eq!(Summary::of(run(&later, RULES)).counts(), (1, [0, 1, 0, 0]), "{kind}, {later}");
        assert_eq!(run(&later, "").code(), Some(2), "{kind}, {later}");
    }
}

#[test]
fn all_partitions_go_on_with_other_rules() {
    let crawl = Crawl::new().set("partitions.count=2");
    let run = |rules: &str| crawl.run(&["--drain", "--config"]).arg(file(&crawl, rules)).output();
    assert_eq!(run("").code(), Some(0));
    let path = file(&crawl, RULES).display().to_string();
    let converted = crawl.command("storage convert", &["--rules", "--config", &path]).output();
    assert_eq!(converted.code(), Some(0), "{converted:?}");
    assert_eq!(run(RULES).code(), Some(0));
    assert_eq!(run("").code(), Some(3));
}
