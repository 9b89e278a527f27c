//! Tests of layers that override each other.

use super::super::found::Layers;
use super::super::*;
use super::load;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use urlseen_filter::number::parse_count;

#[test]
fn later_layers_override_earlier_ones() {
    let file = "[filter]\ncapacity = 1e3\nthreads = 3\n[source]\nbatch = 30\n[log]\nlevel='warn'";
    let env = [("URLSEEN_FILTER__CAPACITY", "2_000"), ("URLSEEN_FILTER__THREADS", "4")];
    let config = load(file, &env, &["filter.capacity=3k", "filter.capacity=4k"]).unwrap();
    assert_eq!(config.filter.capacity, 4000);
    assert_eq!(config.filter.threads, 4);
    assert_eq!(config.source.batch, 30);
    assert_eq!(config.log.level, Level::Warn);
}

/// Makes a certificate and its private key in two files.
fn make_certificate(pem: &str, key: &str) {
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a";
    let files = ["-out", pem, "-keyout", key];
    let made = Command::new("openssl").args(words.split(' ')).args(files).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn every_key_can_be_set_from_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [pem, key] = ["a.pem", "a.key"].map(path);
    make_certificate(&pem, &key);
    let values = [
        ("crawl.name", "shop"),
        ("redis.url", "rediss://redis.example"),
        ("redis.tls_ca", pem.as_str()),
        ("redis.tls_cert", pem.as_str()),
        ("redis.tls_key", key.as_str()),
        ("redis.wait_replicas", "2"),
        ("partitions.count", "1"),
        ("partitions.run", "0-0"),
        ("source.kind", "list"),
        ("source.key", "in"),
        ("source.take_from", "right"),
        ("source.item", "json"),
        ("source.batch", "10k"),
        ("source.batch_bytes", "1e6"),
        ("source.item_bytes", "2e6"),
        ("source.linger", "5ms"),
        ("fingerprint.algorithm", "scrapy-2.6"),
        ("fingerprint.canonical", "w3lib-2.4"),
        ("fingerprint.keep_fragments", "true"),
        ("fingerprint.drop_tracking", "2026-11"),
        ("filter.kind", "two-choice"),
        ("filter.place", "local"),
        ("filter.capacity", "1e9"),
        ("filter.error_rate", "1e-8"),
        ("filter.grow_to", "1e10"),
        ("filter.expire_after", "30d"),
        ("filter.max_memory", "1G"),
        ("filter.expansion", "0"),
        ("filter.seed", "7"),
        ("filter.when_full", "stop"),
        ("filter.bit", "24"),
        ("filter.hash_number", "8"),
        ("filter.block_num", "3"),
        ("filter.recent", "5"),
        ("filter.key", "bits"),
        ("filter.threads", "2"),
        ("sink.key", "out"),
        ("sink.kind", "list"),
        ("sink.push_to", "left"),
        ("sink.emit", "url"),
        ("sink.max_len", "5M"),
        ("rejects.key", "bad"),
        ("rejects.max_len", "20k"),
        ("rejects.when_full", "drop-oldest"),
        ("forget.key", "again"),
        ("forget.max_len", "9k"),
        ("held.timeout", "5s"),
        ("held.deliveries", "7"),
        ("serve.listen", "[::1]:6390"),
        ("serve.keys", "one,two"),
        ("serve.item", "url"),
        ("serve.max_clients", "7"),
        ("serve.greeting_timeout", "5s"),
        ("serve.request_bytes", "1M"),
        ("serve.allow_delete", "false"),
        ("storage.dir", "/var/lib/urlseen"),
        ("storage.fsync", "always"),
        ("storage.snapshot_bytes", "1M"),
        ("storage.horizon_bytes", "1G"),
        ("storage.archive", "true"),
        ("storage.on_rollback", "emit-again"),
        ("admin.listen", "[::1]:9090"),
        ("admin.hosts", "one,two"),
        ("log.level", "debug"),
        ("log.format", "json"),
        ("log.progress", "0s"),
    ];
    assert_eq!(values.map(|(key, _)| key), KEYS);
    let bare = ["filter.capacity", "filter.error_rate", "filter.seed", "filter.threads"];
    let file: String = values
        .iter()
        .map(|&(key, value)| match value {
            "true" | "false" => format!("{key} = {value}\n"),
            "one,two" => format!("{key} = ['one', 'two']\n"),
            value if bare.contains(&key) => format!("{key} = {value}\n"),
            value if parse_count(value).is_ok() => {
                format!("{key} = {}\n", parse_count(value).unwrap())
            }
            text => format!("{key} = {text:?}\n"),
        })
        .collect();
    let variables = values.map(|(key, value)| (unknown::variable(key), value));
    let env: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let set = values.map(|(key, value)| format!("{key}={value}"));
    let set: Vec<_> = set.iter().map(String::as_str).collect();

    let config = load(&file, &[], &[]).unwrap();
    assert_eq!(load("", &env, &[]).as_ref(), Ok(&config));
    assert_eq!(load("", &[], &set).as_ref(), Ok(&config));
    assert_eq!(config.source.batch, 10_000);
    assert_eq!(config.filter.seed, Some(7));
    assert_eq!(config.filter.expire_after, "30d".parse().ok());
    assert_eq!(config.admin.listen.as_deref(), Some("[::1]:9090"));
    assert_eq!(config.log.progress, None);
    assert_eq!(config.storage.dir, Path::new("/var/lib/urlseen"));
}

#[test]
fn a_named_file_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("latin1.toml"), b"[log]\nlevel = \"\xe9\"").unwrap();
    std::fs::write(at("bom.toml"), "\u{feff}[log]\r\nlevel = 'warn'\r\n").unwrap();
    std::fs::write(at("long.toml"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    let load = |name: &str| Config::load(Sources { file: Some(at(name)), ..Sources::default() });
    let refused = |name: &str| {
        let problems = load(name).unwrap_err();
        let problems = problems.to_string();
        let first = problems.lines().next().unwrap();
        first.strip_prefix(&at(name).display().to_string()).unwrap().to_owned()
    };
    assert!(refused("absent.toml").starts_with(": cannot be read: No such file"));
    assert_eq!(
        refused("latin1.toml"),
        ":2:10: is not UTF-8 from here on; save the file as UTF-8 text"
    );
    assert!(refused("long.toml").starts_with(": is longer than 1048576 bytes"));
    assert_eq!(load("bom.toml").unwrap().log.level, Level::Warn);
    let all = Config::load(Sources {
        file: Some(at("bom.toml")),
        env: vec![
            ("URLSEEN_LOG__LEVEL".into(), "error".into()),
            ("URLSEEN_SOURCE__BATCH".into(), "7".into()),
        ],
        set: vec!["log.level=debug".to_owned()],
    });
    let all = all.unwrap();
    assert_eq!((all.log.level, all.source.batch), (Level::Debug, 7));

    let mut layers = Layers::default();
    layers.add_file(&at("absent.toml"), false);
    let checked = Config::checked(layers, |_| None).map(|(config, _)| config);
    assert_eq!(checked, Ok(Config::default()));
}

#[cfg(unix)]
#[test]
fn variables_that_are_not_text_are_refused_only_if_they_are_of_urlseen() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let mut layers = Layers::default();
    layers.add_environment(vec![
        (bytes(b"LANG\xff"), bytes(b"\xff")),
        (bytes(b"URLSEEN_CRAWL__NAME"), bytes(b"\xff")),
    ]);
    let problems = Config::checked(layers, |_| None).unwrap_err().to_string();
    assert!(problems.starts_with(
        "environment URLSEEN_CRAWL__NAME: is not UTF-8; set it to UTF-8 text\n\
         1 problem in"
    ));
}

#[test]
fn partitions_share_no_key_and_no_folder() {
    let config = Config::default();
    assert!(config.crawls().eq([config.clone()]));
    let mut config = config;
    config.partitions.count = urlseen_fingerprint::PartitionCount::new(16).unwrap();
    let parts: Vec<_> = config.crawls().collect();
    assert_eq!(parts[3].source.key, "demo:discovered:{3.0}");
    assert_eq!(parts[3].crawl_name(), "demo, partition 3 of 16");
    assert_eq!(parts[3].storage.dir, std::path::Path::new("storage/demo/3"));
    assert_eq!(parts[3].filter.capacity, 6250);
    let sources: std::collections::BTreeSet<_> = parts.iter().map(|it| it.keys().state).collect();
    assert_eq!(sources.len(), 16);
}
