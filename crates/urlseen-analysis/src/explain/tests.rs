//! Tests of the explanations of items.

use super::pair::Difference;
use super::*;
use urlseen_engine::config::ItemForm;

fn options() -> Options {
    Options::new(ItemForm::Auto.into(), Algorithm::Scrapy)
}

fn of(item: &str) -> Explained {
    explain(item.as_bytes(), options())
}

/// Returns the fingerprint of an item, as the reader computes it.
fn judged(item: &str) -> Fingerprint {
    let mut reader = Reader::new(options());
    match reader.read(item.as_bytes()).unwrap().identity {
        Identity::Fingerprint(fingerprint) => fingerprint,
        Identity::Unfiltered | Identity::Dropped(_) => panic!("{item} has no key"),
    }
}

#[test]
fn a_url_is_followed_to_its_fingerprints() {
    let url = "HTTP://Example.com?b=2&a=1#top";
    let explained = of(url);
    assert_eq!(explained.form, Some("url"));
    assert_eq!(explained.canonical.as_deref(), Some("http://example.com/?a=1&b=2"));
    let rules: Vec<_> = explained.steps.iter().map(|step| &step.rule[..]).collect();
    assert_eq!(
        rules,
        [
            "scheme in lower case",
            "host in lower case",
            "empty path",
            "query sorted",
            "fragment dropped"
        ]
    );
    assert_eq!(explained.fingerprints.len(), 3);
    for (computed, &algorithm) in explained.fingerprints.iter().zip(Algorithm::all()) {
        let expected = Fingerprinter::new(algorithm)
            .fingerprint(&urlseen_core::fingerprint::Request::get(url))
            .unwrap();
        assert_eq!(computed.fingerprint.as_deref(), Some(expected.to_string().as_str()));
    }
    assert_eq!(explained.key, Some(judged(url)));
}

#[test]
fn listed_spellings_have_equal_or_other_fingerprints_as_stated() {
    for item in [
        "https://example.com/",
        "https://u@example.com:8443/a/b?x=&b=1&a=2;#f",
        r#"{"url":"http://h/a","method":"post","body":"x=1","headers":{"a":"b"}}"#,
        r#"{"url":"http://h/a","body_base64":"/w=="}"#,
        "data:,a",
        "0123456789abcdef0123456789abcdef01234567",
        "0123456789ABCDEF0123456789abcdef01234567\tpayload",
    ] {
        let explained = of(item);
        assert!(explained.same.len() >= 2, "{item}: {:?}", explained.same);
        for Spelling { item: other, differs } in &explained.same {
            assert_eq!(judged(other), judged(item), "{item}: {other}: {differs}");
            assert_ne!(other, item);
        }
        for Spelling { item: other, differs } in &explained.others {
            assert_ne!(judged(other), judged(item), "{item}: {other}: {differs}");
        }
    }
    let differs: Vec<_> = of("https://example.com/a").others.iter().map(|it| it.differs).collect();
    assert_eq!(
        differs,
        [
            "the default port, written out",
            "the scheme",
            "www.",
            "a slash at the end of the path",
            "case of the path",
            "the method"
        ]
    );
}

#[test]
fn a_fragment_makes_another_spelling_only_if_fragments_are_dropped() {
    let kept = Options {
        fingerprint: FingerprintSpec { keep_fragments: true, ..Algorithm::Scrapy.into() },
        ..options()
    };
    let explained = explain(b"http://h/", kept);
    assert!(explained.same.iter().all(|spelling| spelling.differs != "a fragment"));
    assert!(of("http://h/").same.iter().any(|spelling| spelling.differs == "a fragment"));
    assert!(!explained.ignored.iter().any(|words| words.contains("fragment")));
}

#[test]
fn the_steps_of_a_refused_url_end_at_the_refusal() {
    let explained = of("HTTP://h:99999/");
    assert_eq!(explained.unreadable.as_deref(), Some("the port is over 65535"));
    assert_eq!(explained.steps.len(), 1);
    assert!(explained.fingerprints.iter().all(|computed| computed.refused.is_some()));
    assert_eq!((explained.key, explained.same.len()), (None, 0));
    let explained = of("{");
    assert!(explained.unreadable.unwrap().starts_with("not a JSON object"));
    assert_eq!(of("").unreadable.as_deref(), Some("the item is empty"));
}

#[test]
fn verbatim_urls_are_converted_by_one_function_of_w3lib_or_none() {
    let item = r#"{"url":"HTTP://h?b&a#f","meta":{"verbatim_url":true}}"#;
    let explained = of(item);
    assert_eq!(explained.canonical.as_deref(), Some("HTTP://h?b&a#f"));
    assert_eq!(explained.steps, []);
    let options = Options { fingerprint: Algorithm::ScrapyRedis.into(), ..options() };
    let explained = explain(item.as_bytes(), options);
    assert_eq!(explained.canonical.as_deref(), Some("http://h/?a=&b="));
    assert!(explained.steps.iter().all(|step| step.by == "w3lib.url.canonicalize_url"));
}

#[test]
fn an_item_that_passes_unchecked_has_a_reason() {
    let explained = of(r#"{"url":"http://h/","dont_filter":true}"#);
    assert_eq!(explained.passes.as_deref(), Some("the item has dont_filter"));
    assert_eq!((explained.key, explained.fingerprints.len()), (None, 3));
}

fn two(one: &str, other: &str) -> Pair {
    pair(&of(one), &of(other), options())
}

#[test]
fn the_first_difference_between_two_items_is_reported() {
    for (one, other, what, first, second) in [
        ("http://h/", "https://h/", "scheme", Some("http"), Some("https")),
        ("http://h/", "http://h:80/", "port", None, Some("80")),
        ("http://h/a/", "http://h/a", "path", Some("/a/"), Some("/a")),
        ("http://h/?b=1&a", "http://h/?a&c=1", "field of the query", Some("b=1"), Some("c=1")),
        ("http://h/?a", "http://h/", "query", Some("a="), None),
        (
            "http://h/",
            r#"{"url":"http://h/","method":"head"}"#,
            "method",
            Some("GET"),
            Some("HEAD"),
        ),
        (
            r#"{"url":"http://h/","body":"a=1"}"#,
            r#"{"url":"http://h/","body":"a=2"}"#,
            "body, from byte 2 on",
            Some("1"),
            Some("2"),
        ),
    ] {
        for verdict in two(one, other).verdicts {
            let algorithm = verdict.algorithm;
            assert_eq!(verdict.same, Some(false), "{one} {other} {algorithm}");
            let (first, second) = (first.map(str::to_owned), second.map(str::to_owned));
            let expected = Difference { what: what.to_owned(), one: first, other: second };
            assert_eq!(verdict.difference, Some(expected), "{one} {other} {algorithm}");
        }
    }
}

#[test]
fn the_rules_that_make_two_items_equal_are_reported() {
    let found = two("HTTP://h/?b&a=", "http://h/?a=&b=#f");
    assert!(found.verdicts.iter().all(|verdict| verdict.same == Some(true)));
    let rules: Vec<_> = found.rules.iter().map(|rule| &rule.rule[..]).collect();
    assert_eq!(rules, ["scheme in lower case", "blank values", "query sorted", "fragment dropped"]);
    let found = two("http://h/", r#"{"url":"http://h/","method":"get","priority":1}"#);
    assert!(found.verdicts.iter().all(|verdict| verdict.same == Some(true)));
    assert_eq!((found.rules.len(), found.also.len()), (0, 2));
    let (one, other) = ("00".repeat(20), format!("{}\tpayload", "00".repeat(20)));
    let found = two(&one, &other);
    assert!(found.verdicts.iter().all(|verdict| verdict.same == Some(true)));
    assert_eq!(found.also.len(), 1);
    assert!(two("http://h:x/", "http://h/").verdicts.iter().all(|it| it.same.is_none()));
}

#[test]
fn algorithms_can_disagree_about_verbatim_urls() {
    let verbatim = r#"{"url":"http://h/#a","meta":{"verbatim_url":true}}"#;
    let same: Vec<_> = two(verbatim, "http://h/").verdicts.iter().map(|it| it.same).collect();
    assert_eq!(same, [Some(false), Some(true), Some(true)]);
}
