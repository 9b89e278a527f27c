//! Tests of the rules of single values.

use super::super::raw::{Raw, ValueError};
use super::super::value::*;
use std::time::Duration;
use toml::de::DeValue;

#[test]
fn keys_are_an_array_or_separated_by_commas() {
    let keys = |raw| (redis_keys().read)(&raw);
    let both = || Ok(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(keys(text("a, b")), both());
    assert_eq!(keys(text("['a', \"b\"]")), both());
    assert_eq!(keys(toml("['a', 'b']")), both());
    assert_eq!(keys(toml("'a'")), Err(ValueError::Type));
    assert_eq!(keys(toml("['a', 1]")), Err(ValueError::Type));
    for bad in ["", "a,,b", "['a'", "[]"] {
        assert_eq!(keys(text(bad)), Err(ValueError::Value), "{bad}");
    }
}

fn text(text: &str) -> Raw {
    Raw::new(text.to_owned())
}

fn toml(text: &str) -> Raw {
    Raw::from_toml(DeValue::parse(text).unwrap().get_ref())
}

#[test]
fn a_file_needs_the_right_types() {
    let whole = |raw| (whole::<u64>(1..=1_000_000_000, "").read)(&raw);
    for (value, wanted) in [
        ("10_000", Ok(10_000)),
        ("0x10", Ok(16)),
        ("+5", Ok(5)),
        ("1e8", Ok(100_000_000)),
        ("2.5", Err(ValueError::Value)),
        ("-1", Err(ValueError::Value)),
        ("0xffff_ffff_ffff_ffff_ffff", Err(ValueError::Value)),
        ("inf", Err(ValueError::Value)),
        ("\"10\"", Err(ValueError::Type)),
        ("true", Err(ValueError::Type)),
        ("[10]", Err(ValueError::Type)),
        ("2026-01-01", Err(ValueError::Type)),
    ] {
        assert_eq!(whole(toml(value)), wanted, "{value}");
    }
    assert_eq!((number(0.0..=1.0).read)(&toml("1")), Ok(1.0));
    assert_eq!((number(0.0..=1.0).read)(&toml("nan")), Err(ValueError::Value));
    assert_eq!((number(0.0..=1.0).read)(&toml("\"1\"")), Err(ValueError::Type));
    assert_eq!((flag().read)(&toml("\"true\"")), Err(ValueError::Type));
    assert_eq!((redis_key().read)(&toml("7")), Err(ValueError::Type));
    assert_eq!((duration_or_off("1s", "24h").read)(&toml("10")), Err(ValueError::Type));
    assert_eq!((seed().read)(&toml("42")), Ok(Some(42)));
    assert_eq!((seed().read)(&toml("\"42\"")), Err(ValueError::Value));
    assert_eq!((seed().read)(&toml("4294967296")), Err(ValueError::Value));
}

#[test]
fn ranges_include_their_ends_and_no_more() {
    let whole = |value| (whole::<u16>(1..=100_000, "").read)(&text(value));
    assert_eq!(whole("1"), Ok(1));
    assert_eq!(whole("0"), Err(ValueError::Value));
    assert_eq!(whole("100_001"), Err(ValueError::Value));
    assert_eq!(whole("65536"), Err(ValueError::Value), "more than the type holds");
    let every = |value| (duration_or_off("1s", "24h").read)(&text(value));
    assert_eq!(every("0s"), Ok(None));
    assert_eq!(every("1s"), Ok(Some(Duration::from_secs(1))));
    assert_eq!(every("24h"), Ok(Some(Duration::from_hours(24))));
    assert_eq!(every("999ms"), Err(ValueError::Value));
    assert_eq!(every("25h"), Err(ValueError::Value));
    let span = |value| (duration("1s", "24h").read)(&text(value));
    assert_eq!(span("1s"), Ok(Duration::from_secs(1)));
    assert_eq!(span("24h"), Ok(Duration::from_hours(24)));
    assert_eq!(span("0s"), Err(ValueError::Value));
}

#[test]
fn a_crawl_name_can_be_a_folder_name() {
    for name in ["demo", "shop:de", "{shop}", "crawl 7", "ünï", "..."] {
        assert_eq!((crawl_name().read)(&text(name)), Ok(name.to_owned()));
    }
    for name in ["", ".", "..", "a/b", "a\nb", " a", "a ", "a\0", &"a".repeat(201)] {
        assert_eq!((crawl_name().read)(&text(name)), Err(ValueError::Value), "{name:?}");
    }
}

#[test]
fn names_are_an_array_or_separated_by_commas() {
    let read = |text: &str| (host_names().read)(&Raw::new(text.to_owned()));
    let both = || Ok(vec!["metrics.example".to_owned(), "Box_7.".to_owned()]);
    assert_eq!(read("metrics.example, Box_7."), both());
    assert_eq!(read("['metrics.example', 'Box_7.']"), both());
    assert_eq!(read(""), Ok(Vec::new()));
    assert_eq!(read("[]"), Ok(Vec::new()));
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
        assert_eq!(read(bad), Err(ValueError::Value), "{bad}");
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
