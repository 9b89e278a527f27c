//! Outcome of items: real links, items of each form, emitted and rejected items.

use serde_json::Value;

use super::{Crawl, REJECTED, SINK, Summary, rejected_item};
use crate::util::links::{discovered, refused, unseen};

#[test]
fn a_real_crawl_has_the_same_unseen_links_as_with_scrapy() {
    let crawl = Crawl::new();
    let discovered = discovered();
    let links: Vec<&str> = discovered.lines().collect();
    crawl.push(&links);
    let summary = crawl.drain();
    let expected = unseen();
    let expected: Vec<&str> = expected.lines().collect();
    let unseen = crawl.list(SINK);
    assert_eq!(unseen.len(), expected.len());
    for (number, (found, expected)) in unseen.iter().zip(&expected).enumerate() {
        assert_eq!(String::from_utf8_lossy(found), **expected, "line {number}");
    }
    let refused: Vec<String> = refused().into_iter().map(|(_, link)| link).collect();
    let rejects = crawl.rejects();
    let rejected: Vec<&str> = rejects.iter().map(|json| json["item"].as_str().unwrap()).collect();
    assert_eq!(rejected, refused);
    let others = links.len() - expected.len() - refused.len();
    let counts = (links.len(), [expected.len(), others, 0, refused.len()]);
    assert_eq!((summary.counts(), summary.ending()), (counts, "drained"));
}

/// Expected outcome of an item.
enum Fate {
    /// The item is emitted unchanged.
    Unseen,
    Seen,
    /// The item is emitted as these bytes.
    As(&'static [u8]),
    /// The item is rejected, with a reason that has these words.
    Rejected(&'static str),
}
use Fate::{As, Rejected, Seen, Unseen};

/// Runs a crawl with these settings and items: once with all items in one batch, and once with each
/// item in its own batch.
fn check(settings: &[&str], items: &[(&[u8], Fate)]) {
    for batch in ["source.batch=100", "source.batch=1"] {
        let crawl = settings.iter().fold(Crawl::new().set(batch), |crawl, it| crawl.set(it));
        crawl.push(&items.iter().map(|(item, _)| *item).collect::<Vec<_>>());
        let summary = crawl.drain();
        let onward = items.iter().filter_map(|(item, fate)| match fate {
            Unseen => Some(*item),
            As(bytes) => Some(*bytes),
            Seen | Rejected(_) => None,
        });
        let found = crawl.list(SINK);
        assert_eq!(found, onward.map(<[u8]>::to_vec).collect::<Vec<_>>(), "{summary:?}");
        let mut rejects = crawl.rejects().into_iter();
        for (item, fate) in items {
            let Rejected(reason) = fate else { continue };
            let reject = rejects.next().expect("a reject for each item that cannot be read");
            assert_reject(&reject, item, reason);
        }
        assert_eq!(rejects.next(), None);
        assert_eq!(summary.count("items"), items.len());
    }
}

#[track_caller]
fn assert_reject(reject: &Value, item: &[u8], reason: &str) {
    let (found, time) = (reject["reason"].as_str().unwrap(), reject["time"].as_str().unwrap());
    assert!(found.contains(reason), "{found:?} does not hold {reason:?}");
    humantime::parse_rfc3339(time).unwrap();
    assert_eq!(rejected_item(reject), item);
    assert_eq!(reject["item"].is_string(), std::str::from_utf8(item).is_ok(), "{reject}");
}

const SHA1: &[u8] = b"0123456789abcdef0123456789abcdef01234567";

#[test]
fn every_form_is_detected_and_unreadable_items_are_rejected_with_a_reason() {
    check(
        &[],
        &[
            (b"http://a/?b=1&a=2", Unseen),
            (b"http://a/?a=2&b=1#fragment", Seen),
            (br#"{"url": "http://a/?a=2&b=1", "meta": {"depth": 1}}"#, Seen),
            (br#"{"url": "http://a/?a=2&b=1", "method": "POST"}"#, Unseen),
            (br#"{"url": "http://a/?a=2&b=1", "method": "POST", "body": "x"}"#, Unseen),
            (br#"{"url": "http://a/?a=2&b=1", "method": "POST", "body_base64": "eA=="}"#, Seen),
            (SHA1, Unseen),
            (b"0123456789ABCDEF0123456789ABCDEF01234567", Seen),
            (b"0123456789abcdef0123456789abcdef01234567\tpayload", Seen),
            (br#"{"fingerprint": "0123456789abcdef0123456789abcdef01234567"}"#, Seen),
            (b"0123456789abcdef0123456789abcdef", Unseen),
            (b"0123456789ABCDEF0123456789ABCDEF\t\xff\x00", Seen),
            (b"ff23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\t\xff\x00", Unseen),
            (b"FF23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Seen),
            (br#"{"fingerprint": "a key"}"#, Unseen),
            (br#"{"fingerprint": "a key", "url": "http://b/"}"#, Seen),
            (b"http://b/", Unseen),
            (b"", Rejected("empty")),
            (b"http://a/\xff", Rejected("not UTF-8: byte 9")),
            (b"\x80\x04\x95", Rejected("pickle")),
            (b"/relative", Rejected("")),
            (b"mailto:a@b", Rejected("")),
            (b"{\"url\": 1}", Rejected("`url` is a number")),
            (b"{\"url\": ", Rejected("not a JSON object")),
            (b"{}", Rejected("neither `url` nor `fingerprint`")),
            // The filter does not record a rejected item, so the same item is rejected each time.
            (b"{}", Rejected("neither `url` nor `fingerprint`")),
            (b"http://b/", Seen),
        ],
    );
}

#[test]
fn unfiltered_items_pass_each_time_and_are_not_remembered() {
    check(
        &[],
        &[
            (br#"{"url": "http://a/", "dont_filter": true}"#, Unseen),
            (br#"{"url": "http://a/", "dont_filter": true}"#, Unseen),
            (b"http://a/", Unseen),
            (b"http://a/", Seen),
            (br#"{"url": "http://a/", "dont_filter": true}"#, Unseen),
            (br#"{"url": "http://a/", "dont_filter": false}"#, Seen),
            (br#"{"url": "http://a/", "dont_filter": 1}"#, Rejected("`dont_filter`")),
        ],
    );
}

#[test]
fn only_urls_are_emitted_if_configured() {
    check(
        &["sink.emit=url"],
        &[
            (br#"{"url": "http://a/\u00e9", "meta": {"depth": 1}}"#, As("http://a/é".as_bytes())),
            ("http://a/é".as_bytes(), Seen),
            (b"http://b/", Unseen),
            (br#"{"url": "http://c/", "dont_filter": true}"#, As(b"http://c/")),
            (SHA1, Rejected("no URL to emit (sink.emit is not `item`)")),
            (br#"{"fingerprint": "a key"}"#, Rejected("no URL to emit")),
            (br#"{"fingerprint": "a key", "url": "http://d/"}"#, As(b"http://d/")),
            (b"0123456789abcdef0123456789abcdef01234567\tpayload", Rejected("no URL to emit")),
        ],
    );
}

#[test]
fn start_urls_are_emitted_if_configured() {
    check(
        &["sink.emit=start-url"],
        &[
            (
                br#"{"url": "http://a/", "method": "post", "body": "b", "meta": {"depth": 1}}"#,
                As(br#"{"url": "http://a/", "method": "POST", "meta": {"depth": 1}}"#),
            ),
            (b"http://a/", As(br#"{"url": "http://a/"}"#)),
            (b"http://a/#top", Seen),
            (SHA1, Rejected("no URL to emit")),
            (br#"{"fingerprint": "a key"}"#, Rejected("no URL to emit")),
            (
                b"\x80\x04}(\x8c\x03url\x8c\x09http://b/\x8c\x04meta}\x8c\x01ac_\nC\nsu.",
                Rejected(
                    "`meta` of the pickled request holds an object, which JSON cannot express",
                ),
            ),
        ],
    );
}

/// Rules (`[[pass]]`) can be set only in a file, so this test writes one.
#[test]
fn items_that_match_a_rule_pass_each_time_and_are_counted() {
    for store in ["filter.place=local", "filter.place=redis"] {
        for batch in ["source.batch=1", "source.batch=100"] {
            let crawl = Crawl::new().set(store).set(batch);
            let file = crawl.server.folder().join("rules.toml");
            let rules = "[[pass]]\nname = 'lists'\npath = '^/list/'\n\
                         [[pass]]\nname = 'host'\nhost = '^www\\.a$'\n";
            std::fs::write(&file, rules).unwrap();
            let items = [
                "http://a/list/1",
                "http://a/page",
                "http://WWW.a/page",
                "http://a/list/1",
                r#"{"url": "http://a/list/1", "dont_filter": true}"#,
                "http://a/page#top",
                "http://a/list",
                r#"{"url": "http://www.a/x", "fingerprint": "k"}"#,
                "mailto:a",
                "http://www.a/page",
            ];
            let run = || {
                crawl.push(&items);
                Summary::of(crawl.run(&["--drain", "--json", "--config"]).arg(&file).output())
            };
            let passed = [0, 2, 3, 4, 7, 9].map(|index| items[index].as_bytes().to_vec());
            let first = run();
            assert_eq!(first.counts(), (10, [2, 1, 6, 1]), "{first:?}");
            let expected =
                serde_json::json!([{"rule": "lists", "items": 2}, {"rule": "host", "items": 3}]);
            assert_eq!(first.values["passed"], expected);
            assert_eq!(crawl.len(SINK), 8);
            // The filter has not recorded the items that matched a rule. So they pass again.
            let again = run();
            assert_eq!(again.counts(), (10, [0, 3, 6, 1]), "{again:?}");
            assert_eq!(crawl.list(SINK)[8..], passed);
        }
    }
}

#[test]
fn items_that_match_a_drop_rule_go_nowhere_and_are_counted() {
    for store in ["filter.place=local", "filter.place=redis"] {
        for batch in ["source.batch=1", "source.batch=100"] {
            let crawl = Crawl::new().set(store).set(batch);
            let file = crawl.server.folder().join("rules.toml");
            let rules = "[[drop]]\nname = 'schemes'\nscheme = '^(mailto|tel)$'\n\
                         [[drop]]\nextension = '^zip$'\n";
            std::fs::write(&file, rules).unwrap();
            crawl.push(&[
                "http://a/1",
                "mailto:a",
                "http://a/b.zip",
                "nothing",
                "http://a/1",
                r#"{"url": "tel:1", "dont_filter": true}"#,
                "http://a/2",
                "http://a/b.zip",
            ]);
            let run = crawl.run(&["--drain", "--json", "--config"]).arg(&file).output();
            let summary = Summary::of(run);
            assert_eq!(summary.counts(), (8, [2, 1, 0, 1]), "{summary:?}");
            assert_eq!(summary.count("dropped"), 4, "{summary:?}");
            let expected = serde_json::json!([
                {"rule": "schemes", "items": 2}, {"rule": "extension = '^zip$'", "items": 2}
            ]);
            assert_eq!(summary.values["dropped_by_rule"], expected);
            assert_eq!(crawl.list(SINK), [b"http://a/1", b"http://a/2"]);
            assert_eq!(crawl.len(REJECTED), 1);
            // The filter has not recorded what was dropped.
            crawl.push(&["http://a/b.zip"]);
            assert_eq!(crawl.drain().counts(), (1, [1, 0, 0, 0]));
        }
    }
}

#[test]
fn only_the_configured_form_is_read() {
    check(
        &["source.item=fingerprint"],
        &[
            (b"http://a/?b&a", Unseen),
            (b"http://a/?a&b", Unseen),
            (b"\xff\x00", Unseen),
            (b"\xff\x00", Seen),
            (b"a\tb", Rejected("tab")),
        ],
    );
    check(
        &["source.item=tab"],
        &[(b"a key\tpayload", Unseen), (b"a key\tother payload", Seen), (SHA1, Rejected("no tab"))],
    );
    check(
        &["source.item=json"],
        &[(b"http://a/", Rejected("JSON")), (br#"{"url": "http://a/"}"#, Unseen)],
    );
    check(&["source.item=url"], &[(SHA1, Rejected("scheme")), (b"http://a/", Unseen)]);
}

#[test]
fn the_configured_algorithm_computes_fingerprints() {
    let (plain, fragment): (&[u8], &[u8]) = (b"http://a/", b"http://a/#b");
    check(&["fingerprint.keep_fragments=false"], &[(plain, Unseen), (fragment, Seen)]);
    check(&["fingerprint.keep_fragments=true"], &[(plain, Unseen), (fragment, Unseen)]);
    for (algorithm, fingerprint) in [
        ("scrapy", "ea6d1b8954623b4af48bb7e965657d5d34c7c039"),
        ("scrapy-2.6", "95ec56a3664046ce630550b520498054efbd1cc2"),
        ("scrapy-redis", "796979b33ce918655ec282ff86c264f51375ad00"),
    ] {
        let setting = format!("fingerprint.algorithm={algorithm}");
        check(&[&setting], &[(fingerprint.as_bytes(), Unseen), (plain, Seen)]);
    }
}

#[test]
fn only_the_results_and_the_state_of_the_crawl_remain() {
    let crawl = Crawl::new();
    crawl.push(&["http://a/", ""]);
    crawl.drain();
    let keys: Vec<String> = crawl.dump().into_keys().collect();
    let record = "urlseen:{demo:discovered}:crawl";
    assert_eq!(keys, [REJECTED, SINK, record, super::STATE]);
    assert_eq!(crawl.server.cli(&["exists", super::LEASE]), "0");
}
