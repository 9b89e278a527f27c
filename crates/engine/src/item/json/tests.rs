//! Tests of reading requests from JSON.

use super::*;
use urlseen_fingerprint::{Fingerprint, Request};

fn parse(line: &str) -> Result<ItemRequest<'_>, JsonError> {
    read(line.as_bytes())
}

#[track_caller]
fn refused(line: &str) -> String {
    parse(line).unwrap_err().to_string()
}

#[test]
fn a_byte_order_mark_before_the_object_is_passed_over() {
    for before in ["\u{feff}", " \u{feff}\r\n", "\r\n"] {
        assert_eq!(
            parse(&format!(r#"{before}{{"url": "u"}}"#)).unwrap(),
            parse(r#"{"url": "u"}"#).unwrap()
        );
    }
    for wrong in ["\u{feff}", "\u{feff}\u{feff}{\"url\": \"u\"}", "{\"url\": \"u\"}\u{feff}"] {
        assert!(refused(wrong).starts_with("not a JSON object: "), "{wrong}");
    }
}

#[test]
fn all_known_fields_are_read_and_others_are_not() {
    let line = r#"{"url": "http:\/\/h\/\u00e9", "method": "post", "body": "\u00ff",
        "dont_filter": true, "meta": {"depth": [1, {"url": 2}], "verbatim_url": true},
        "headers": {"a": "\ud800"}, "priority": -1e9}"#;
    let item = parse(line).unwrap();
    assert_eq!(
        item.request(),
        Some(Request {
            url: "http://h/é",
            method: "post",
            body: "ÿ".as_bytes(),
            verbatim_url: true
        })
    );
    assert!(item.dont_filter);
}

#[test]
fn plain_text_is_borrowed() {
    let item = parse(r#"{"url": "http://h/", "body": "b"}"#).unwrap();
    assert!(matches!(item.url, Some(Cow::Borrowed(_))));
    assert!(matches!(item.body, Cow::Borrowed(_)));
}

#[test]
fn a_body_may_be_base64() {
    let item = parse(r#"{"url": "http://h/", "body_base64": "AP/+"}"#).unwrap();
    assert_eq!(item.request().unwrap().body, [0, 0xff, 0xfe]);
    assert!(refused(r#"{"url": "u", "body_base64": "AP/"}"#).contains("`body_base64`"));
    assert!(refused(r#"{"url": "u", "body": "", "body_base64": ""}"#).contains("both"));
}

#[test]
fn a_ready_fingerprint_needs_no_url() {
    let item = parse(r#"{"fingerprint": "0011"}"#).unwrap();
    assert_eq!(item.request(), None);
    assert_eq!(item.fingerprint, Some(Fingerprint::from_text(b"0011")));
    assert!(refused(r#"{"fingerprint": "", "url": "http://h/"}"#).contains("empty"));
    assert!(refused(r#"{"method": "GET"}"#).contains("neither"));
}

#[test]
fn spellings_of_one_digest_are_one_fingerprint() {
    let digest = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let upper = digest.to_uppercase();
    for given in [&format!(" {digest}\\n"), &format!("0x{digest}"), &format!("0X{upper}"), &upper] {
        let item = format!(r#"{{"fingerprint": "{given}"}}"#);
        let expected = Some(Fingerprint::from_text(digest.as_bytes()));
        assert_eq!(parse(&item).unwrap().fingerprint, expected, "{item}");
    }
    let odd = |text: &str| {
        let item = format!(r#"{{"fingerprint": "{text}"}}"#);
        parse(&item).unwrap().has_odd_fingerprint()
    };
    assert!(odd(&digest[1..]) && odd("2jmj7l5rSw0yVb/vlWAYkK/YBwk="), "a digest with an error");
    assert!(!odd(digest) && !odd(" 0xABCD "), "hex digits");
}

#[test]
fn an_infinite_priority_is_a_number_and_another_encoding_is_refused() {
    let item = parse(r#"{"url": "u", "priority": 1e400, "encoding": "UTF-8"}"#).unwrap();
    assert_eq!(item.priority, Priority::Number(f64::INFINITY));
    assert!(refused(r#"{"url": "é", "encoding": "latin-1"}"#).contains("`encoding` is not UTF-8"));
    assert!(refused(r#"{"url": "u", "body": "é", "encoding": "cp1252"}"#).contains("`encoding`"));
    assert!(parse(r#"{"url": "u", "body": "b", "encoding": "cp1252"}"#).is_ok());
}

#[test]
fn null_means_an_absent_field() {
    let nulls = r#"{"url": "u", "method": null, "body": null, "body_base64": null, "meta": null,
        "fingerprint": null, "dont_filter": null}"#;
    assert_eq!(parse(nulls).unwrap(), parse(r#"{"url": "u"}"#).unwrap());
    let in_meta = r#"{"url": "u", "meta": {"verbatim_url": null}}"#;
    assert_eq!(parse(in_meta).unwrap(), parse(r#"{"url": "u"}"#).unwrap());
    assert!(refused(r#"{"url": null}"#).contains("neither"));
}

#[test]
fn the_last_of_equal_keys_counts() {
    let item = parse(
        r#"{"url": 1, "url": "a", "\u0075rl": "b", "meta": {"verbatim_url": true}, "meta": {}}"#,
    );
    assert_eq!(item.unwrap(), parse(r#"{"url": "b"}"#).unwrap());
}

#[test]
fn wrong_types_are_named() {
    for (line, message) in [
        (r#"{"url": 1}"#, "`url` is a number; it must be text"),
        (r#"{"url": -1.5}"#, "`url` is a number; it must be text"),
        (r#"{"url": {"verbatim_url": 1}}"#, "`url` is an object; it must be text"),
        (r#"{"url": "u", "method": true}"#, "`method` is true or false; it must be text"),
        (r#"{"url": "u", "body": [1, [2]]}"#, "`body` is a list; it must be text"),
        (r#"{"url": "u", "fingerprint": 5}"#, "`fingerprint` is a number; it must be text"),
        (
            r#"{"url": "u", "dont_filter": 1}"#,
            "`dont_filter` is a number; it must be true or false",
        ),
        (r#"{"url": "u", "meta": "m"}"#, "`meta` is text; it must be an object"),
        (
            r#"{"url": "u", "meta": {"verbatim_url": "yes"}}"#,
            "`meta.verbatim_url` is text; it must be true or false",
        ),
    ] {
        assert_eq!(refused(line), message);
    }
}

#[test]
fn any_other_json_is_refused() {
    for line in ["", "{", "[]", "\"u\"", "1", r#"{"url": "u"} x"#, r#"{"url": "\ud800"}"#] {
        assert!(refused(line).starts_with("not a JSON object: "), "{line}");
    }
    assert!(read(b"{\"url\": \"\xff\"}").is_err());
    let deep = format!(r#"{{"url": "u", "x": {}}}"#, "[".repeat(100_000));
    assert!(parse(&deep).is_err());
}

#[test]
fn times_are_read_beside_meta_and_in_it() {
    for (line, ttl) in [
        (r#"{"url": "u"}"#, Ttl::Nothing),
        (r#"{"url": "u", "ttl": 60, "meta": {"ttl": 5}}"#, Ttl::Number(60.0)),
        (r#"{"url": "u", "meta": {"ttl": "5s"}}"#, Ttl::Text("5s".into())),
        (r#"{"url": "u", "ttl": [1]}"#, Ttl::Wrong),
    ] {
        assert_eq!(parse(line).unwrap().ttl, ttl, "{line}");
    }
}
