//! Tests of rules on whole URLs: what they make equal, and what they leave alone.

use proptest::prelude::*;

use super::{SameRules, SameStep, TrackingList};
use crate::Request;
use crate::{Algorithm, FingerprintSpec, Fingerprinter};

fn fingerprinter(drop_tracking: TrackingList, rules: &str) -> Fingerprinter {
    let same: SameRules = rules.parse().unwrap();
    Fingerprinter::new(FingerprintSpec { drop_tracking, same, ..Algorithm::Scrapy.into() })
}

fn hashed(rules: &str, url: &str) -> String {
    fingerprinter(TrackingList::None, rules).hashed(&Request::get(url)).unwrap().to_owned()
}

#[test]
fn rules_change_the_hashed_url_of_their_pages_alone() {
    let rules = r#"[
        {"host":"^shop\\.","drop_params":["sid"],"fold":["index"]},
        {"host":"^shop\\.","path":"^/list","keep_params":["page","sort"]},
        {"scheme":"^https$","host":"^(www\\.)?news\\.org$","fold":["scheme","www"]}
    ]"#;
    for (url, expected) in [
        ("http://shop.x/a?sid=1&b=2", "http://shop.x/a?b=2"),
        ("http://SHOP.x/a/index.html?sid=1#f", "http://shop.x/a/"),
        ("http://shop.x/list?sid=1&page=2&color=3", "http://shop.x/list?page=2"),
        ("http://shop.x/list?sid=1&color=3", "http://shop.x/list"),
        ("https://www.news.org:443/?sid=1", "http://news.org/?sid=1"),
        ("http://www.news.org/", "http://www.news.org/"),
        ("http://other.x/index.html?sid=1", "http://other.x/index.html?sid=1"),
        ("ftp://shop.x/index.html?sid=1", "ftp://shop.x/index.html?sid=1"),
    ] {
        assert_eq!(hashed(rules, url), expected, "{url}");
    }
}

#[test]
fn a_changed_url_is_changed_by_the_rules_for_it_too() {
    let rules = r#"[
        {"path":"^/a$","drop_params":["x"]},
        {"host":"^h$","fold":["trailing-slash"]},
        {"host":"^www\\.h\\.x$","fold":["www"]},
        {"host":"^h\\.x$","fold":["index"]}
    ]"#;
    assert_eq!(hashed(rules, "http://h/a/?x=1"), "http://h/a");
    assert_eq!(hashed(rules, "http://www.h.x/b/index.php"), "http://h.x/b/");
}

#[test]
fn tracking_parameters_go_by_one_setting() {
    let mut listed = fingerprinter(TrackingList::November2026, "[]");
    let url = "https://h/a?b=1&fbclid=2&ref=5&utm_source=3&utm_x=4";
    assert_eq!(listed.hashed(&Request::get(url)), Ok("https://h/a?b=1&ref=5"));
    assert_eq!(listed.canonical(&Request::get(url)), Ok(url));
    let steps = listed.same_steps(&Request::get(url)).unwrap();
    let [SameStep { rule: None, before, after, .. }] = &steps[..] else { panic!() };
    assert_eq!((before.as_str(), after.as_str()), (url, "https://h/a?b=1&ref=5"));
    let mut both = fingerprinter(TrackingList::November2026, r#"[{"drop_params":["b"]}]"#);
    let steps = both.same_steps(&Request::get(url)).unwrap();
    let steps: Vec<_> = steps.iter().map(|step| (step.rule, &step.after[..])).collect();
    let first = "https://h/a?fbclid=2&ref=5&utm_source=3&utm_x=4";
    assert_eq!(steps, [(Some(0), first), (None, "https://h/a?ref=5")]);
}

#[test]
fn names_of_parameters_count_and_ignored_values_do_not() {
    let rules = r#"[{"ignore_values":["id","p*"],"drop_params":["pk"]}]"#;
    for (url, expected) in [
        ("http://h/?id=1&q=1", "http://h/?id=&q=1"),
        ("http://h/?id", "http://h/?id="),
        ("http://h/?id=2&p=1&id=1&pk=3&pa=", "http://h/?id=&p=&pa="),
        ("http://h/?ID=1&xid=2", "http://h/?ID=1&xid=2"),
    ] {
        assert_eq!(hashed(rules, url), expected, "{url}");
    }
    assert_eq!(hashed(r#"[{"ignore_values":["*"]}]"#, "http://h/?b=1&a=2"), "http://h/?a=&b=");
}

#[test]
fn session_ids_go_from_queries_and_paths() {
    let rules = r#"[{"drop_sessions":"2026-12"}]"#;
    let id = "9682993c8daa2c5497996114facdc805";
    for (url, expected) in [
        ("http://h/a?PHPSESSID=1&b=2&cfid=3&CFTOKEN=4", "http://h/a?b=2"),
        (&format!("http://h/?sid={id}"), "http://h/"),
        ("http://h/?sid=12", "http://h/?sid=12"),
        ("http://h/a;jsessionid=1?b=2", "http://h/a?b=2"),
        ("http://h/a;x=1;;JSESSIONID=1.node", "http://h/a;x=1"),
        ("http://h/a;jsessionid=1;/b;;x/", "http://h/a/b;;x/"),
        ("http://h/.;jsessionid=1/b", "http://h/.;jsessionid=1/b"),
        ("http://h/jsessionid=1", "http://h/jsessionid=1"),
    ] {
        assert_eq!(hashed(rules, url), expected, "{url}");
    }
}

#[test]
fn fragments_stay_on_the_pages_of_a_rule_alone() {
    let rules = r#"[
        {"host":"^app\\.x$","path":"^/$","keep_fragments":true},
        {"host":"^app\\.x$","fold":["index"]}
    ]"#;
    let mut fingerprinter = fingerprinter(TrackingList::None, rules);
    for (url, canonical, expected) in [
        ("http://app.x/#/users/1", "http://app.x/#/users/1", "http://app.x/#/users/1"),
        ("http://app.x/index.html#!a", "http://app.x/index.html#!a", "http://app.x/#!a"),
        ("http://app.x/b#/users/1", "http://app.x/b", "http://app.x/b"),
        ("http://h/?a#b", "http://h/?a=", "http://h/?a="),
        ("ftp://app.x/#a", "ftp://app.x/", "ftp://app.x/"),
    ] {
        let request = Request::get(url);
        assert_eq!(fingerprinter.canonical(&request), Ok(canonical));
        assert_eq!(fingerprinter.hashed(&request), Ok(expected));
    }
    let verbatim = Request { verbatim_url: true, ..Request::get("http://h/#b") };
    assert_eq!(fingerprinter.hashed(&verbatim), Ok("http://h/#b"));
    let everywhere = r#"[{"keep_fragments":true}]"#;
    assert_eq!(hashed(everywhere, "http://h/#a"), "http://h/#a");
    assert_eq!(hashed(everywhere, "data:,a#b"), "data:,a");
}

#[test]
fn a_verbatim_url_is_changed_only_if_the_algorithm_makes_it_canonical() {
    let rules: SameRules = r#"[{"fold":["www"]}]"#.parse().unwrap();
    let request = Request { verbatim_url: true, ..Request::get("http://www.h.x/") };
    for (algorithm, expected) in [
        (Algorithm::Scrapy, "http://www.h.x/"),
        (Algorithm::Scrapy26, "http://h.x/"),
        (Algorithm::ScrapyRedis, "http://h.x/"),
    ] {
        let spec = FingerprintSpec { same: rules.clone(), ..algorithm.into() };
        assert_eq!(Fingerprinter::new(spec).hashed(&request), Ok(expected), "{algorithm}");
    }
}

/// Makes URLs from few parts, so that many of them are equal by some rules.
fn urls() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        "(www\\.){0,3}(a|b)\\.x",
        "www\\.(a|b)\\.{0,2}",
        "u@www\\.a\\.x:(80|443|8080)",
        "(u(:p)?@)?(www\\.)?(a|é)\\.x?\\.{0,2}(:80)?",
        "(%77|w)ww\\.(a|%61|%C3%A9|%E9)(\\.|%2e){0,2}(x|%2F)(:80)?",
    ];
    let segment = prop_oneof![
        "(index|default|INDEX|a)\\.(html|php|x)(;[ab]=1)?",
        "(\\.|[aB])(;c)?(;jsessionid=[12])?(;d=%2f)?;?",
        "(%C3%A4|é|%2F)?",
    ];
    let field = "(utm_[ab]|sid|page|cfid|%73id|p\\[\\]|é)(=[12]?)?";
    let path = proptest::collection::vec(segment, 0..4);
    let query = proptest::collection::vec(field, 0..4);
    let parts = ("https?", host, path, "/?", query, "(#[ab]?)?");
    parts.prop_map(|(scheme, host, path, end, query, fragment)| {
        format!("{scheme}://{host}/{}{end}?{}{fragment}", path.join("/"), query.join("&"))
    })
}

/// Makes rules with patterns that fit some of the URLs.
fn rules() -> impl Strategy<Value = Vec<String>> {
    let pages = prop_oneof![
        Just(""),
        Just(r#""host":"^(www\\.)+a""#),
        Just(r#""host":"^a\\.x$""#),
        Just(r#""path":"/a$""#),
        Just(r#""path":"(html|/)$""#),
        Just(r#""scheme":"^http$""#),
        Just(r#""extension":"^php$""#),
    ];
    let all: Vec<_> = super::Fold::all().collect();
    let fold = proptest::sample::subsequence(all, 0..=10);
    let names = |key| {
        let names = proptest::sample::subsequence(&["utm_*", "sid", "p*", "é"], 0..=2);
        names.prop_map(move |it| format!("\"{key}\":{}", serde_json::json!(it)))
    };
    let lists = ["drop_params", "keep_params", "ignore_values"].map(names);
    let more = prop_oneof![
        Just(""),
        Just(r#""drop_sessions":"2026-12""#),
        Just(r#""keep_fragments":true"#),
    ];
    let rule = (pages, fold, lists, more);
    let rule = rule.prop_filter_map("it changes nothing", |(pages, fold, lists, more)| {
        let fold: Vec<_> = fold.into_iter().map(super::Fold::name).collect();
        let fold = format!("\"fold\":{}", serde_json::json!(fold));
        let parts = [pages.to_owned(), fold, more.to_owned()].into_iter().chain(lists);
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let rule = format!("{{{}}}", parts.join(","));
        format!("[{rule}]").parse::<SameRules>().is_ok().then_some(rule)
    });
    proptest::collection::vec(rule, 1..4)
}

proptest! {
    #[test]
    fn rules_are_idempotent_and_their_order_does_not_matter(url in urls(), rules in rules()) {
        let text = format!("[{}]", rules.join(","));
        let once = hashed(&text, &url);
        prop_assert_eq!(&hashed(&text, &once), &once);
        let reversed: Vec<_> = rules.iter().rev().map(String::as_str).collect();
        prop_assert_eq!(&hashed(&format!("[{}]", reversed.join(",")), &url), &once);
    }

    #[test]
    fn a_changed_url_is_canonical(url in urls(), rules in rules()) {
        let text = format!("[{}]", rules.join(","));
        let once = hashed(&text, &url);
        let keep = r#"[{"keep_fragments":true}]"#;
        prop_assert_eq!(hashed(keep, &once), once);
    }

    #[test]
    fn two_urls_have_one_fingerprint_if_their_hashed_urls_are_equal(
        one in urls(),
        other in urls(),
        rules in rules(),
    ) {
        let text = format!("[{}]", rules.join(","));
        let mut fingerprinter = fingerprinter(TrackingList::None, &text);
        let mut fingerprint = |url: &str| fingerprinter.fingerprint(&Request::get(url)).unwrap();
        let are_equal = hashed(&text, &one) == hashed(&text, &other);
        prop_assert_eq!(fingerprint(&one) == fingerprint(&other), are_equal);
        prop_assert_eq!(fingerprint(&hashed(&text, &one)), fingerprint(&one));
    }

    #[test]
    fn the_steps_lead_to_the_hashed_url(url in urls(), rules in rules()) {
        let text = format!("[{}]", rules.join(","));
        let mut fingerprinter = fingerprinter(TrackingList::None, &text);
        let mut now = fingerprinter.canonical(&Request::get(&url)).unwrap().to_owned();
        let steps = fingerprinter.same_steps(&Request::get(&url)).unwrap();
        for SameStep { rule, before, after, .. } in steps {
            prop_assert!(rule.is_some_and(|rule| rule < rules.len()));
            prop_assert_eq!(&before, &now);
            prop_assert_ne!(&before, &after);
            now = after;
        }
        prop_assert_eq!(now, hashed(&text, &url));
    }
}
