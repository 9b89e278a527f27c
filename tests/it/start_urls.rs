//! Start URLs in the sink, read by the spider of scrapy-redis.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use urlseen_engine::item::{Emit, ItemForm};
use urlseen_engine::item::{Options, Reader};
use urlseen_fingerprint::Algorithm;

use crate::pickles::vectors;
use crate::util::sources::root;

/// Python program. It reads lines with the form of an item, the item, and the emitted start URL
/// (both in base64). Compares the request that the spider makes from the start URL with the request
/// that Scrapy makes from the item.
const COMPARE: &str = r#"
import base64, json, pickle, sys
from scrapy import Request
from scrapy_redis.spiders import RedisMixin

class Spider(RedisMixin):
    redis_encoding = "utf-8"

count = 0
for line in sys.stdin:
    form, item, emitted = json.loads(line)
    item, emitted = base64.b64decode(item), base64.b64decode(emitted)
    made = Spider().make_request_from_data(emitted)
    if form == "pickle":
        fields = pickle.loads(item)
    elif form == "json":
        fields = json.loads(item)
    else:
        fields = {"url": item.decode()}
    meta = fields.get("meta") or {}
    asked = Request(fields["url"], method=fields.get("method") or "GET", meta=meta)
    assert (made.url, made.method, made.body) == (asked.url, asked.method, b""), (made, asked)
    assert repr(made.meta) == repr(asked.meta), (made.meta, asked.meta)
    assert made.dont_filter
    count += 1
print(count)
"#;

fn reader() -> Reader {
    let form = ItemForm::Auto.into();
    Reader::new(Options { emit: Emit::StartUrl, ..Options::new(form, Algorithm::ScrapyRedis) })
}

#[test]
fn the_spider_makes_the_same_request_from_a_start_url() {
    let mut reader = reader();
    let (mut lines, mut count, mut unsayable) = (String::new(), 0, 0);
    let mut add = |form: &str, item: &[u8], emitted: &[u8]| {
        let line = [form, &BASE64_STANDARD.encode(item), &BASE64_STANDARD.encode(emitted)];
        lines.push_str(&json!(line).to_string());
        lines.push('\n');
        count += 1;
    };
    for vector in vectors().iter().filter(|vector| vector.reason.is_none()) {
        let pickle = vector.pickle();
        match reader.read(&pickle) {
            Ok(item) => {
                assert!(vector.meta.is_some(), "JSON cannot express {}", vector.pickle);
                add("pickle", &pickle, &item.emitted.unwrap());
            }
            Err(error) => {
                let error = error.to_string();
                let no_url = error.contains("no URL to emit");
                assert!(no_url || error.contains("which JSON cannot express"), "{error}");
                assert!(no_url || vector.meta.is_none(), "{error}: {}", vector.pickle);
                unsayable += 1;
            }
        }
        if let Some(json) = &vector.json {
            let item = reader.read(json.as_bytes()).unwrap();
            add("json", json.as_bytes(), &item.emitted.unwrap());
        }
    }
    for json in [
        r#"{"url": "http://a/\u00e9?b=1&a", "meta": null}"#,
        r#"{"url": "http://a/", "meta": { }, "method": "get"}"#,
        r#"{"meta": 5, "url": "http://a/", "meta": {"a": [1.50, "\ud83d\ude00\u0000", 1e2]}}"#,
        r#"{"url": "http://a/", "m\u0065ta": {"big": 123456789012345678901234567890}, "x": 1}"#,
    ] {
        let item = reader.read(json.as_bytes()).unwrap();
        add("json", json.as_bytes(), &item.emitted.unwrap());
    }
    for url in ["http://a/", "http://a/\"\\\u{7f}é😀?b&a#c"] {
        let item = reader.read(url.as_bytes()).unwrap();
        add("url", url.as_bytes(), &item.emitted.unwrap());
    }
    assert!(count > 800 && unsayable > 50, "{count}, {unsayable}");

    let mut python = Command::new(root().join(".venv/bin/python"))
        .args(["-c", COMPARE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), count.to_string());
}

/// Tests values that contain the same value many times, values that contain themselves, and deep
/// nesting.
#[test]
fn no_meta_takes_much_time_or_memory() {
    let mut reader = reader();
    let pickle =
        |meta: &[u8]| [b"\x80\x04}(\x8c\x03url\x8c\x09http://a/\x8c\x04meta", meta, b"u."].concat();
    let mut steps = Vec::new();
    for step in 0..90_u8 {
        steps.extend([b'q', step, b'0', b']', b'(', b'h', step, b'h', step, b'e']);
    }
    let doubled = [b"}\x8c\x01a]", &steps[..], b"s"].concat();
    let cyclic = b"}q\x07\x8c\x01ah\x07s".to_vec();
    let nested = [b"}\x8c\x01a", &b"]".repeat(200)[..], &b"a".repeat(199), b"s"].concat();
    for (meta, words) in [
        (doubled, "repeated values that exceed the size limit"),
        (cyclic, "more than 100 deep"),
        (nested, "more than 100 deep"),
    ] {
        let error = reader.read(&pickle(&meta)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (meta, words) in [
        (&b"}\x8c\x01a\x85s"[..], "damaged"),
        (b"}\x8c\x01aK\x01\x85s", "a tuple"),
        (b"}\x8c\x01aC\x01as", "bytes"),
        (b"}K\x01K\x01s", "a key that is not a str"),
        (b"}\x8c\x01aG\x7f\xf8\0\0\0\0\0\0s", "a float that is not finite"),
        (b"}\x8c\x01a\x8a\x09\0\0\0\0\0\0\0\0\x01s", "more than 64 bits"),
        (b"}\x8c\x01a\x8c\x03\xed\xa0\x80s", "not UTF-8"),
        (b"}\x8c\x01a\x8fs", "a set"),
        (b"}\x8c\x01acm\nC\n)Rs", "an object"),
    ] {
        let error = reader.read(&pickle(meta)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
