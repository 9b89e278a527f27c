//! Tests of reading items in all forms.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use std::time::Duration;
use urlseen_fingerprint::rule_pages::{Pages, Pattern};
use urlseen_fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};

const SHA1: &str = "0123456789abcdef0123456789abcdef01234567";

fn read(form: ItemForm, emit: Emit, item: &[u8]) -> Result<Item<'_>, Unreadable> {
    Reader::new(Options { emit, ..Options::new(form.into(), Algorithm::Scrapy) }).read(item)
}

fn computed(url: &str) -> Identity {
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    Identity::Fingerprint(
        fingerprinter.fingerprint(&urlseen_fingerprint::Request::get(url)).unwrap(),
    )
}

fn given(text: &str) -> Identity {
    Identity::Fingerprint(Fingerprint::from_text(text.as_bytes()))
}

#[test]
fn auto_tells_the_forms_apart_by_their_first_bytes() {
    let url = "http://example.com/?b&a";
    for (item, identity) in [
        (url.to_owned(), computed(url)),
        (format!(r#"{{"url": "{url}"}}"#), computed(url)),
        (SHA1.to_owned(), given(SHA1)),
        (SHA1[..32].to_uppercase(), given(&SHA1[..32])),
        (format!("{SHA1}\tany payload\t"), given(SHA1)),
        (format!("{SHA1}{}\t", &SHA1[..24]), given(&format!("{SHA1}{}", &SHA1[..24]))),
    ] {
        let read = read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
        assert_eq!(read.identity, identity, "{item}");
    }
}

#[test]
fn auto_rejects_items_that_no_form_reads() {
    let read = |item| read(ItemForm::Auto, Emit::Item, item).unwrap_err().to_string();
    assert_eq!(read(b""), "the item is empty");
    assert_eq!(read(b"http://a/\xff"), "the URL is not UTF-8: byte 9 begins no character");
    assert_eq!(read(b"\x80\x04\x95"), "the pickle is cut short");
    // This is one digit short of a SHA-1, so it is read as a URL.
    assert!(read(&SHA1.as_bytes()[1..]).contains("scheme"));
    assert!(read(b"{\"url\": 1}").contains("url"));
}

#[test]
fn a_tab_item_is_judged_by_the_text_before_its_first_tab() {
    for (item, key) in [("a key\tpayload\tmore", "a key"), ("\tpayload", "")] {
        let read = read(ItemForm::Tab, Emit::Item, item.as_bytes()).unwrap();
        assert_eq!(read.identity, given(key));
    }
    let no_tab = read(ItemForm::Tab, Emit::Item, SHA1.as_bytes());
    assert!(matches!(no_tab, Err(Unreadable::NoTab)));
}

/// Pickle of `{"url": "http://a/x.zip", "priority": 7, "fingerprint": "0b"}`.
const PICKLE: &[u8] = b"\x80\x02}(X\x03\0\0\0urlX\x0e\0\0\0http://a/x.zipX\x08\0\0\0priorityK\x07\
    X\x0b\0\0\0fingerprintX\x02\0\0\x000bu.";

fn flagged(flags: &str, payload: &[u8]) -> Vec<u8> {
    [SHA1.as_bytes(), b"\t", flags.as_bytes(), b"\t", payload].concat()
}

#[test]
fn with_flags_the_payload_goes_to_the_sink_and_is_not_read() {
    let options = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    let reader = Reader::new(Options { scored: true, ..options });
    let mut reader = reader.expiring(Some("30d".parse().unwrap()));
    let hours = |hours| Lifetime::at_least(Duration::from_hours(hours), "30d".parse().unwrap());
    for (flags, identity, score, lifetime) in &[
        ("&", given(SHA1), 0.0, Lifetime::WHOLE),
        ("&priority=-3&ttl=7200", given(SHA1), 3.0, hours(2)),
        ("&ttl=12h", given(SHA1), 0.0, hours(12)),
        ("&dont_filter&priority=0.5", Identity::Unfiltered, -0.5, Lifetime::WHOLE),
    ] {
        for payload in [PICKLE, b"\x80 no pickle", b"any\ttext"] {
            let item = flagged(flags, payload);
            let read = reader.read(&item).unwrap();
            assert_eq!((&read.identity, read.score, read.lifetime), (identity, *score, *lifetime));
            assert_eq!(read.emitted.as_deref(), Some(payload));
        }
    }
}

#[test]
fn flags_count_in_every_form_that_has_a_fingerprint_or_a_request() {
    for form in [ItemForm::Auto, ItemForm::Tab, ItemForm::Json, ItemForm::Pickle] {
        let item = flagged("&", PICKLE);
        let read = read(form, Emit::Item, &item).unwrap();
        assert_eq!((read.identity, read.emitted.as_deref()), (given(SHA1), Some(PICKLE)), "{form}");
    }
    for item in [format!("{SHA1}\t&amp; text"), format!("{SHA1}\tx\t&\ty")] {
        let read = read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
        assert_eq!((read.identity, read.emitted), (given(SHA1), None), "{item}");
    }
}

#[test]
fn wrong_flags_and_missing_payloads_are_refused() {
    let options = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    let reader = Reader::new(Options { scored: true, ..options });
    let mut reader = reader.expiring(Some("30d".parse().unwrap()));
    for (flags, payload, reason) in [
        ("&", "", RejectReason::Empty),
        ("&dontfilter", "x", RejectReason::Fingerprint),
        ("&priority", "x", RejectReason::Fingerprint),
        ("&\u{e9}=1", "x", RejectReason::Fingerprint),
        ("&priority=high", "x", RejectReason::Priority),
        ("&priority=inf", "x", RejectReason::Priority),
        ("&ttl=soon", "x", RejectReason::Expiry),
        ("&ttl=nan", "x", RejectReason::Expiry),
    ] {
        let item = flagged(flags, payload.as_bytes());
        assert_eq!(RejectReason::of(&reader.read(&item).unwrap_err()), reason, "{flags}");
    }
}

#[test]
fn rules_and_other_sinks_read_the_payload() {
    let json = br#"{"url": "http://a/x.zip", "meta": {"a": 1}, "dont_filter": true}"#;
    for payload in [PICKLE, json, b"http://a/x.zip"] {
        let item = flagged("&ttl=1h", payload);
        let url = read(ItemForm::Auto, Emit::Url, &item).unwrap();
        assert_eq!(url.identity, given(SHA1));
        assert_eq!(url.emitted.as_deref(), Some(&b"http://a/x.zip"[..]));
        let start = read(ItemForm::Auto, Emit::StartUrl, &item).unwrap().emitted.unwrap();
        assert!(start.starts_with(br#"{"url": "http://a/x.zip""#));

        let mut pages = Pages::default();
        *pages.pattern("extension").unwrap() = Some(Pattern::new("^zip$").unwrap());
        let rules = [NamedRule { name: "zip".to_owned(), pages }];
        let options = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
        let mut dropping = Reader::new(Options { drop: rules.clone().into(), ..options.clone() });
        assert_eq!(dropping.read(&item).unwrap().identity, Identity::Dropped(0));
        let mut passing = Reader::new(Options { pass: rules.into(), ..options });
        let passed = passing.read(&item).unwrap();
        assert_eq!((passed.identity, passed.passed), (Identity::Unfiltered, Some(0)));
        assert_eq!(passed.emitted.as_deref(), Some(payload));
        assert_eq!(passing.canonical_url(&item), Some("http://a/x.zip"));
        let outline = passing.outline(&item).unwrap();
        let found = (outline.request.unwrap().url, outline.given, outline.dont_filter);
        assert_eq!(
            found,
            ("http://a/x.zip".to_owned(), Some(Fingerprint::from_text(SHA1.as_bytes())), false)
        );
    }
    let item = flagged("&", b"\x80 no pickle");
    assert!(matches!(read(ItemForm::Auto, Emit::Url, &item), Err(Unreadable::Pickle(_))));
}

#[test]
fn a_fingerprint_item_is_any_bytes_without_a_tab() {
    let key = b"caf\xc3\xa9 \xff";
    let item = read(ItemForm::Fingerprint, Emit::Item, key).unwrap();
    assert_eq!(item.identity, Identity::Fingerprint(Fingerprint::Text(key[..].into())));
    let tab = read(ItemForm::Fingerprint, Emit::Item, b"a\tb");
    assert!(matches!(tab, Err(Unreadable::TabInFingerprint)));
}

#[test]
fn a_json_item_brings_its_own_fingerprint_or_asks_not_to_be_filtered() {
    let read = |item: &'static str| read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
    assert_eq!(read(r#"{"fingerprint": "0b", "url": "nothing"}"#).identity, given("0b"));
    let unfiltered = read(r#"{"url": "http://a/", "dont_filter": true}"#);
    assert_eq!(unfiltered.identity, Identity::Unfiltered);
    let posted = read(r#"{"url": "http://a/", "method": "POST", "body": "b"}"#);
    assert_ne!(posted.identity, computed("http://a/"));
}

#[test]
fn a_digest_is_read_like_its_hex_digits() {
    let mut reader = Reader::new(Options::new(Form::Digest, Algorithm::Scrapy));
    // This digest begins like JSON, and has a tab in it.
    let raw = *b"{\t\n1234567890123456\xff";
    let hex = "7b090a31323334353637383930313233343536ff";
    assert_eq!(reader.read(&raw).unwrap().identity, given(hex));
    let short = reader.read(&raw[1..]);
    assert!(matches!(short, Err(Unreadable::NoDigest { length: 19 })));
}

#[test]
fn rules_of_equal_urls_change_the_fingerprint_of_items_and_nothing_else() {
    let same = r#"[{"drop_params":["s*"],"fold":["www","index"]}]"#.parse().unwrap();
    let fingerprint = FingerprintSpec { same, ..Algorithm::Scrapy.into() };
    for (form, emit) in [
        (ItemForm::Auto, Emit::Item),
        (ItemForm::Auto, Emit::Url),
        (ItemForm::Auto, Emit::StartUrl),
    ] {
        let plain = Options { emit, scored: true, ..Options::new(form.into(), Algorithm::Scrapy) };
        let mut by_rules =
            Reader::new(Options { fingerprint: fingerprint.clone(), ..plain.clone() });
        let mut plain = Reader::new(plain);
        for item in [
            "http://www.a.x/index.html?sid=1#b",
            r#"{"url": "http://www.a.x/?s=1", "priority": 2, "meta": {"sid": 3}}"#,
            r#"{"url": "http://a.x/?s=1", "body": "b", "method": "POST", "dont_filter": true}"#,
        ] {
            let [ruled, as_is] = [&mut by_rules, &mut plain].map(|it| it.read(item.as_bytes()));
            let (ruled, as_is) = (ruled.unwrap(), as_is.unwrap());
            let is_filtered = as_is.identity != Identity::Unfiltered;
            assert_eq!(ruled.identity != as_is.identity, is_filtered, "{item}");
            assert_eq!((ruled.url, ruled.emitted), (as_is.url, as_is.emitted), "{item}");
            assert_eq!((ruled.passed, ruled.score), (as_is.passed, as_is.score), "{item}");
        }
        for item in [r#"{"url": "http://www.a.x/?s", "fingerprint": "0b"}"#, SHA1] {
            let [ruled, as_is] = [&mut by_rules, &mut plain].map(|it| it.read(item.as_bytes()));
            assert_eq!(ruled.ok(), as_is.ok(), "{item}");
        }
    }
}

#[test]
fn a_score_is_the_negative_of_a_priority_that_is_a_number() {
    let form = ItemForm::Auto.into();
    let options = Options { scored: true, ..Options::new(form, Algorithm::Scrapy) };
    let mut reader = Reader::new(options);
    for (priority, score) in [
        ("null", 0.0),
        ("-0", 0.0),
        ("7", -7.0),
        ("-1.5", 1.5),
        ("18446744073709551615", -18_446_744_073_709_551_616.0),
    ] {
        let item = format!(r#"{{"url": "http://a/", "priority": {priority}}}"#);
        let found = reader.read(item.as_bytes()).unwrap().score;
        assert_eq!(found.to_bits(), f64::to_bits(score), "{priority}");
    }
    assert_eq!(reader.read(b"http://a/").unwrap().score.to_bits(), 0);
    for (priority, found) in [(r#""1""#, "is text;"), ("true", "is true or false;")] {
        let item = format!(r#"{{"url": "http://a/", "priority": {priority}}}"#);
        assert!(reader.read(item.as_bytes()).unwrap_err().to_string().contains(found));
        assert!(read(ItemForm::Auto, Emit::Item, item.as_bytes()).is_ok());
    }
    let infinite = b"\x80\x02}(X\x03\0\0\0urlX\x09\0\0\0http://a/X\x08\0\0\0priority\
        G\x7f\xf0\0\0\0\0\0\0u.";
    assert!(reader.read(infinite).unwrap_err().to_string().contains("not finite"));
    assert!(read(ItemForm::Auto, Emit::Item, infinite).is_ok());
}

#[test]
fn an_item_without_a_url_cannot_be_emitted_as_one() {
    let read = |item| read(ItemForm::Auto, Emit::Url, item);
    let json = read(br#"{"url": "http://a/\u00e9"}"#).unwrap();
    assert_eq!(json.url.as_deref(), Some("http://a/\u{e9}"));
    assert_eq!(read(b"http://a/").unwrap().url.as_deref(), Some("http://a/"));
    for item in [SHA1.as_bytes(), br#"{"fingerprint": "0b"}"#] {
        assert!(matches!(read(item), Err(Unreadable::NothingToEmit)));
    }
}

#[test]
fn other_text_with_a_url_in_it_is_not_taken_for_a_url() {
    for (item, found, form) in [
        (r#"{"url": "http://a/"}"#, "`{`", ItemForm::Url),
        (" \u{feff}{\"url\": \"http://a/\"}", "`{`", ItemForm::Url),
        (r#"[{"url": "http://a/"}]"#, "`[`", ItemForm::Auto),
        ("\r\n[\"http://a/\"]", "`[`", ItemForm::Auto),
        (r#""http://a/""#, "`\"`", ItemForm::Auto),
        ("\u{a0}{\"url\": \"http://a/\"}", "`{`", ItemForm::Auto),
        (r#"b'{"url": "http://a/"}'"#, "`{`", ItemForm::Auto),
        ("\u{feff}http://a/", "a byte order mark (U+FEFF)", ItemForm::Auto),
        ("2026-11-28 http://a/", "other text", ItemForm::Auto),
        ("1,http://a/,x", "other text", ItemForm::Url),
        ("httpx http://a/", "other text", ItemForm::Auto),
        ("url=http://a/", "other text", ItemForm::Auto),
        ("<loc>http://a/</loc>", "other text", ItemForm::Auto),
        ("Nov 28 10:00 GET http://a/", "other text", ItemForm::Auto),
        ("192.0.2.1 - - [28/Nov/2026:10:00:00] \"GET http://a/\"", "other text", ItemForm::Auto),
        ("Referer: http://a/", "other text", ItemForm::Auto),
        ("://a/", "other text", ItemForm::Auto),
    ] {
        let refused = read(form, Emit::Item, item.as_bytes()).unwrap_err().to_string();
        let expected = format!("there is {found} before the scheme of the URL");
        assert!(refused.starts_with(&expected), "{item}: {refused}");
    }
    for url in ["http://a/[{\"\u{feff}", "HTTP://a/{", "\0 \r\nhttp://a/\"", "data:text/plain,[{\""]
    {
        let item = read(ItemForm::Auto, Emit::Item, url.as_bytes()).unwrap();
        assert_eq!(item.identity, computed(url), "{url}");
    }
}

#[test]
fn white_space_after_an_item_counts_only_after_bare_digits() {
    let read =
        |item: String| read(ItemForm::Auto, Emit::Item, item.as_bytes()).map(|it| it.identity);
    for space in ["\r", " \t\r", "\r\n"] {
        assert_eq!(read(format!("http://a/{space}")).unwrap(), computed("http://a/"));
        let json = read(format!(r#"{{"url": "http://a/"}}{space}"#));
        assert_eq!(json.unwrap(), computed("http://a/"));
        assert!(read(format!("{SHA1}{space}")).is_err());
    }
}

/// Generates white space of JSON, with or without a byte order mark in it.
fn before_json() -> impl Strategy<Value = String> {
    "[ \\t\\r\\n]{0,3}\u{feff}?[ \\t\\r\\n]{0,3}"
}

/// Generates a request with every field that matters.
fn request() -> impl Strategy<Value = serde_json::Value> {
    let url = prop_oneof![Just("http://a/?b&a"), Just("HTTP://A/?a&b"), Just("nothing")];
    let method = prop_oneof![Just("GET"), Just("post")];
    let fingerprint = prop::option::of(prop_oneof![Just(SHA1), Just("any text")]);
    let fields = (url, method, fingerprint, any::<bool>(), -9..9_i32, any::<bool>());
    fields.prop_map(|(url, method, fingerprint, dont_filter, priority, verbatim_url)| {
        json!({
            "url": url, "method": method, "fingerprint": fingerprint, "dont_filter": dont_filter,
            "priority": priority, "meta": { "depth": 3, "verbatim_url": verbatim_url },
        })
    })
}

proptest! {
    #[test]
    fn white_space_and_a_byte_order_mark_before_json_change_nothing(
        before in before_json(), request in request(), behind in "[ \\t\\r\\n]{0,3}",
        form in prop_oneof![Just(ItemForm::Auto), Just(ItemForm::Json)],
        emit in prop_oneof![Just(Emit::Item), Just(Emit::Url), Just(Emit::StartUrl)],
    ) {
        let plain = request.to_string();
        let dressed = format!("{before}{plain}{behind}");
        let options = Options::new(form.into(), Algorithm::Scrapy);
        let mut reader = Reader::new(Options { emit, scored: true, ..options });
        let read = |reader: &mut Reader, item: &str| {
            let read = reader.read(item.as_bytes());
            read.map(|item| format!("{item:?}")).map_err(|error| error.to_string())
        };
        prop_assert_eq!(read(&mut reader, &dressed), read(&mut reader, &plain));
        let mut outline = |item: &str| {
            reader.outline(item.as_bytes()).map_err(|error| error.to_string())
        };
        prop_assert_eq!(outline(&dressed), outline(&plain));
    }
}

#[test]
fn rules_set_the_time_of_pages_by_host_and_path() {
    let expire_after = "30d".parse().unwrap();
    let rule = |key, pattern, after| {
        let mut pages = Pages::default();
        *pages.pattern(key).unwrap() = Some(Pattern::new(pattern).unwrap());
        ExpireRule { pages, after }
    };
    let six_days = Duration::from_hours(24 * 6);
    let rules = [rule("host", r"^news\.", Some(six_days)), rule("path", "^/archive/", None)];
    let days = |days: u64| Lifetime::at_least(Duration::from_hours(24 * days), expire_after);
    let form = ItemForm::Auto.into();
    let options = Options::new(form, Algorithm::Scrapy);
    let mut reader = Reader::new(Options { expire: rules.into(), ..options });
    let lifetime = |reader: &mut Reader, item: &str| reader.read(item.as_bytes()).unwrap().lifetime;
    assert_eq!(lifetime(&mut reader, "http://news.a/"), Lifetime::WHOLE, "nothing expires");
    let mut reader = reader.expiring(Some(expire_after));
    for (item, expected) in [
        ("http://NEWS.a:80/x", days(6)),
        ("http://news.a/archive/1", days(6)),
        ("http://a/x/../archive/1?q", Lifetime::FOREVER),
        ("http://a/x", Lifetime::WHOLE),
        (r#"{"url": "http://a/archive/", "ttl": "12d"}"#, days(12)),
        (r#"{"url": "http://news.a/", "ttl": "12d"}"#, days(6)),
        (r#"{"url": "http://news.a/", "fingerprint": "0b"}"#, days(6)),
        (r#"{"fingerprint": "0b"}"#, Lifetime::WHOLE),
        (SHA1, Lifetime::WHOLE),
    ] {
        assert_eq!(lifetime(&mut reader, item), expected, "{item}");
    }
}
