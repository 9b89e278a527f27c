//! Tests that `config.toml` and the defaults agree.

use super::super::*;
use super::load;
use std::path::Path;
use std::time::Duration;
use urlseen_core::filter::Kind;
use urlseen_core::fingerprint::Algorithm;

fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DEFAULT_FILE);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_documented_file_is_the_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DEFAULT_FILE);
    let documented = Config::load(Sources { file: Some(path), ..Sources::default() });
    assert_eq!(documented, Ok(Config::default()));
    assert_eq!(load("", &[], &[]), Ok(Config::default()));
}

/// The commented-out lines of `config.toml` show the values that are derived from the default name
/// of the crawl.
#[test]
fn the_documented_file_with_derived_names_is_the_default_too() {
    let whole: String = documented()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key)
                if ["key = ", "keys = ", "dir = ", "kind = ", "error_rate = "]
                    .iter()
                    .any(|name| key.starts_with(name)) =>
            {
                key
            }
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_ne!(whole, documented());
    assert_eq!(load(&whole, &[], &[]), Ok(Config::default()));
}

#[test]
fn the_documented_file_has_every_key_once_and_in_order() {
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in documented().lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ")
            && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            keys.push(format!("{section}.{key}"));
        }
    }
    assert_eq!(keys, KEYS);
}

#[test]
fn the_defaults_stay_as_promised_to_users() {
    let config = Config::default();
    assert_eq!(config.crawl.name, "demo");
    assert_eq!(config.redis.url.to_string(), "redis://127.0.0.1:6379/0");
    assert_eq!(config.redis.wait_replicas, 0);
    assert_eq!(config.source.key, "demo:discovered");
    assert_eq!((config.source.take_from, config.source.item), (End::Left, ItemForm::Auto));
    assert_eq!((config.source.batch, config.source.batch_bytes), (1000, 8 << 20));
    assert_eq!(config.fingerprint.algorithm, Algorithm::Scrapy);
    assert!(!config.fingerprint.keep_fragments);
    assert_eq!((config.filter.kind, config.filter.place), (Kind::TWO_CHOICE, FilterPlace::Local));
    assert_eq!((config.filter.capacity, config.filter.error_rate), (10_000_000, 1e-7));
    assert_eq!(config.filter.seed, SeedChoice::Random);
    assert_eq!(config.filter.when_full, WhenFull::Warn);
    assert_eq!((config.filter.key.as_str(), config.filter.threads), ("demo:filter", 0));
    assert_eq!((config.sink.key.as_str(), config.sink.max_len), ("demo:unseen", 0));
    assert_eq!(config.sink.kind, SinkKind::List);
    assert_eq!((config.sink.push_to, config.sink.emit), (End::Right, Emit::Item));
    assert_eq!(config.rejects.key, "demo:rejected");
    assert_eq!(config.rejects.max_len, 1_000_000);
    assert_eq!(config.rejects.when_full, RejectsFull::Wait);
    assert_eq!(config.storage.dir, Path::new("storage/demo"));
    assert_eq!(config.storage.fsync, Fsync::Interval);
    assert_eq!((config.admin.listen, config.serve.listen), (None, None));
    assert_eq!(config.serve.keys, ["demo", "demo:dupefilter"]);
    assert_eq!((config.log.level, config.log.format), (Level::Info, LogFormat::Text));
    assert_eq!(config.log.progress, Some(Duration::from_secs(10)));
}
