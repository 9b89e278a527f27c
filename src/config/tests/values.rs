//! Tests of the rules of single values.

use super::super::value::*;
use std::time::Duration;
use toml::de::DeValue;

#[test]
fn keys_are_an_array_or_separated_by_commas() {
    let keys = |raw| read(&redis_keys(), &raw);
    let both = || Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(keys(text("a, b")), both());
    assert_eq!(keys(text("['a', \"b\"]")), both());
    assert_eq!(keys(toml("['a', 'b']")), both());
    assert_eq!(keys(toml("'a'")), None);
    assert_eq!(keys(toml("['a', 1]")), None);
    for bad in ["", "a,,b", "['a'", "[]"] {
        assert_eq!(keys(text(bad)), None, "{bad}");
    }
}

/// Reads a value by a rule. Returns `None` if the rule refuses it.
fn read<T: 'static>(rule: &Rule<T>, raw: &Raw) -> Option<T> {
    rule.read(raw, "").ok()
}

fn text(text: &str) -> Raw {
    Raw::new(text.to_owned())
}

fn toml(text: &str) -> Raw {
    Raw::from_toml(DeValue::parse(text).unwrap().get_ref())
}

#[test]
fn a_file_needs_the_right_types() {
    let whole = |raw| read(&whole::<u64>(1..=1_000_000_000, ""), &raw);
    for (value, wanted) in [
        ("10_000", Some(10_000)),
        ("0x10", Some(16)),
        ("+5", Some(5)),
        ("1e8", Some(100_000_000)),
        ("2.5", None),
        ("-1", None),
        ("0xffff_ffff_ffff_ffff_ffff", None),
        ("inf", None),
        ("\"10\"", None),
        ("true", None),
        ("[10]", None),
        ("2026-01-01", None),
    ] {
        assert_eq!(whole(toml(value)), wanted, "{value}");
    }
    assert_eq!(read(&number(0.0..=1.0), &toml("1")), Some(1.0));
    assert_eq!(read(&number(0.0..=1.0), &toml("nan")), None);
    assert_eq!(read(&number(0.0..=1.0), &toml("\"1\"")), None);
    assert_eq!(read(&flag(), &toml("\"true\"")), None);
    assert_eq!(read(&redis_key(), &toml("7")), None);
    assert_eq!(read(&duration_or_off("1s", "24h"), &toml("10")), None);
    assert_eq!(read(&seed(), &toml("42")), Some(Some(42)));
    assert_eq!(read(&seed(), &toml("\"42\"")), None);
    assert_eq!(read(&seed(), &toml("4294967296")), None);
}

#[test]
fn ranges_include_their_ends_and_no_more() {
    let whole = |value| read(&whole::<u16>(1..=100_000, ""), &text(value));
    assert_eq!(whole("1"), Some(1));
    assert_eq!(whole("0"), None);
    assert_eq!(whole("100_001"), None);
    assert_eq!(whole("65536"), None, "more than the type holds");
    let every = |value| read(&duration_or_off("1s", "24h"), &text(value));
    assert_eq!(every("0s"), Some(None));
    assert_eq!(every("1s"), Some(Some(Duration::from_secs(1))));
    assert_eq!(every("24h"), Some(Some(Duration::from_hours(24))));
    assert_eq!(every("999ms"), None);
    assert_eq!(every("25h"), None);
    let span = |value| read(&duration("1s", "24h"), &text(value));
    assert_eq!(span("1s"), Some(Duration::from_secs(1)));
    assert_eq!(span("24h"), Some(Duration::from_hours(24)));
    assert_eq!(span("0s"), None);
}

#[test]
fn a_crawl_name_can_be_a_folder_name() {
    for name in ["demo", "shop:de", "{shop}", "crawl 7", "ünï", "..."] {
        assert_eq!(read(&crawl_name(), &text(name)), Some(name.to_owned()));
    }
    for name in ["", ".", "..", "a/b", "a\nb", " a", "a ", "a\0", &"a".repeat(201)] {
        assert_eq!(read(&crawl_name(), &text(name)), None, "{name:?}");
    }
}

#[test]
fn names_are_an_array_or_separated_by_commas() {
    let read = |value| read(&host_names(), &text(value));
    let both = || Some(vec!["metrics.example".to_owned(), "Box_7.".to_owned()]);
    assert_eq!(read("metrics.example, Box_7."), both());
    assert_eq!(read("['metrics.example', 'Box_7.']"), both());
    assert_eq!(read(""), Some(Vec::new()));
    assert_eq!(read("[]"), Some(Vec::new()));
    for bad in [
        "a,,b",
        "a:9090",
        "http://a",
        "*.a",
        "a..b",
        ".",
        "[::1]",
        "a b",
        "b\u{f6}x",
        &"a".repeat(254),
    ] {
        assert_eq!(read(bad), None, "{bad}");
    }
}

#[test]
fn an_authority_has_one_host() {
    for (authority, host) in [
        ("localhost", Some("localhost")),
        ("localhost:9090", Some("localhost")),
        ("localhost:", Some("localhost")),
        ("[::1]", Some("[::1]")),
        ("[::1]:9090", Some("[::1]")),
        ("[::ffff:127.0.0.1]:1", Some("[::ffff:127.0.0.1]")),
        ("", Some("")),
        ("::1", None),
        ("[::1", None),
        ("[::1]9090", None),
        ("[::1]:9090:1", None),
        ("[localhost]", None),
        ("localhost:http", None),
        ("localhost:-1", None),
        ("localhost:123456", None),
        ("localhost:80:80", None),
        ("a@localhost", None),
        ("localhost, evil.example", None),
    ] {
        let found = host_and_port(authority).map(|(host, _)| host);
        assert_eq!(found, host, "{authority}");
    }
}

#[test]
fn a_wrong_type_is_named_unless_it_is_shown() {
    let refused = |raw: &Raw| flag().read(raw, &raw.shown()).unwrap_err();
    assert_eq!(refused(&toml("'true'")), r#""true", a string; allowed: true, false"#);
    assert_eq!(refused(&toml("[1]")), "an array; allowed: true, false");
    assert_eq!(refused(&text("yes")), r#""yes"; allowed: true, false"#);
}

#[test]
fn long_values_are_shortened_and_stay_on_their_line() {
    assert_eq!(text("a\nb").shown(), r#""a\nb""#);
    assert_eq!(text(&"ä".repeat(81)).shown(), format!("\"{}\"…", "ä".repeat(80)));
}
