//! Whole configurations: how the layers lie over each other, and everything that is refused.

use super::*;
use crate::fingerprint::Algorithm;
use std::time::Duration;

/// A configuration from a file's text, environment variables and `--set` arguments.
fn load(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Result<Config, Problems> {
    let mut layers = Layers::default();
    layers.add_toml(Path::new("config.toml"), toml);
    layers.add_environment(env.iter().copied());
    layers.add_set(&set.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>());
    Config::checked(layers)
}

/// The lines of the problems, without the count.
#[track_caller]
fn refused(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    let problems = load(toml, env, set).expect_err("refused").to_string();
    let mut lines: Vec<_> = problems.lines().map(str::to_owned).collect();
    lines.pop();
    lines
}

const NOTHING: [(&str, &str); 0] = [];

fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_FILE);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_documented_file_is_the_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_FILE);
    let documented = Config::load(Sources { file: Some(path), env: NOTHING, set: Vec::new() });
    assert_eq!(documented, Ok(Config::default()));
    assert_eq!(load("", &[], &[]), Ok(Config::default()));
}

/// A commented-out line shows what is derived from the default name.
#[test]
fn the_documented_file_with_derived_names_is_the_default_too() {
    let whole: String = documented()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key) if key.starts_with("key = ") || key.starts_with("dir = ") => key,
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
fn the_defaults_are_the_contract() {
    let config = Config::default();
    assert_eq!(config.crawl.name, "demo");
    assert_eq!(config.redis.url.to_string(), "redis://127.0.0.1:6379/0");
    assert_eq!(config.source.key, "demo:discovered");
    assert_eq!((config.source.take_from, config.source.item), (End::Left, ItemForm::Auto));
    assert_eq!((config.source.batch, config.source.batch_bytes), (1000, 8 << 20));
    assert_eq!(config.fingerprint.algorithm, Algorithm::Scrapy);
    assert!(!config.fingerprint.keep_fragments);
    assert_eq!((config.filter.layout, config.filter.store), (Layout::Native, Store::Local));
    assert_eq!((config.filter.capacity, config.filter.error_rate), (10_000_000, 1e-6));
    assert_eq!(config.filter.seed, SeedChoice::Random);
    assert_eq!(config.filter.when_full, WhenFull::Warn);
    assert_eq!((config.filter.key.as_str(), config.filter.threads), ("demo:filter", 0));
    assert_eq!((config.sink.key.as_str(), config.sink.max_len), ("demo:unseen", 0));
    assert_eq!((config.sink.push_to, config.sink.emit), (End::Right, Emit::Item));
    assert_eq!(config.rejects.key, "demo:rejected");
    assert_eq!(config.rejects.max_len, 1_000_000);
    assert_eq!(config.rejects.when_full, RejectsFull::Wait);
    assert_eq!(config.state.dir, Path::new("state/demo"));
    assert_eq!(config.state.fsync, Fsync::Interval);
    assert_eq!(config.admin.listen, None);
    assert_eq!((config.log.level, config.log.format), (Level::Info, LogFormat::Text));
    assert_eq!(config.log.progress, Some(Duration::from_secs(10)));
}

#[test]
fn later_layers_go_before_earlier_ones() {
    let file = "[filter]\ncapacity = 1e3\nthreads = 3\n[source]\nbatch = 30\n[log]\nlevel='warn'";
    let env = [("URLSEEN_FILTER__CAPACITY", "2_000"), ("URLSEEN_FILTER__THREADS", "4")];
    let config = load(file, &env, &["filter.capacity=3k", "filter.capacity=4k"]).unwrap();
    assert_eq!(config.filter.capacity, 4000);
    assert_eq!(config.filter.threads, 4);
    assert_eq!(config.source.batch, 30);
    assert_eq!(config.log.level, Level::Warn);
}

#[test]
fn every_key_can_be_set_from_everywhere() {
    let values = [
        ("crawl.name", "shop"),
        ("redis.url", "unix:///run/redis.sock"),
        ("source.key", "in"),
        ("source.take_from", "right"),
        ("source.item", "json"),
        ("source.batch", "10k"),
        ("source.batch_bytes", "1e6"),
        ("fingerprint.algorithm", "scrapy-2.6"),
        ("fingerprint.keep_fragments", "true"),
        ("filter.layout", "native"),
        ("filter.store", "local"),
        ("filter.capacity", "1e9"),
        ("filter.error_rate", "1e-8"),
        ("filter.seed", "7"),
        ("filter.when_full", "stop"),
        ("filter.key", "bits"),
        ("filter.threads", "2"),
        ("sink.key", "out"),
        ("sink.push_to", "left"),
        ("sink.emit", "url"),
        ("sink.max_len", "5M"),
        ("rejects.key", "bad"),
        ("rejects.max_len", "20k"),
        ("rejects.when_full", "drop-oldest"),
        ("state.dir", "/var/lib/urlseen"),
        ("state.fsync", "always"),
        ("admin.listen", "[::1]:9090"),
        ("log.level", "debug"),
        ("log.format", "json"),
        ("log.progress", "0s"),
    ];
    assert_eq!(values.map(|(key, _)| key), KEYS);
    let bare = ["filter.capacity", "filter.error_rate", "filter.seed", "filter.threads"];
    let file: String = values
        .iter()
        .map(|&(key, value)| match value {
            "true" => format!("{key} = true\n"),
            value if bare.contains(&key) => format!("{key} = {value}\n"),
            value if parse_count(value).is_ok() => {
                format!("{key} = {}\n", parse_count(value).unwrap())
            }
            text => format!("{key} = {text:?}\n"),
        })
        .collect();
    let variables = values.map(|(key, value)| (layers::variable(key), value));
    let env: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let set = values.map(|(key, value)| format!("{key}={value}"));
    let set: Vec<_> = set.iter().map(String::as_str).collect();

    let config = load(&file, &[], &[]).unwrap();
    assert_eq!(load("", &env, &[]).as_ref(), Ok(&config));
    assert_eq!(load("", &[], &set).as_ref(), Ok(&config));
    assert_eq!(config.source.batch, 10_000);
    assert_eq!(config.filter.seed, SeedChoice::Fixed(7));
    assert_eq!(config.admin.listen.map(|listen| listen.port), Some(9090));
    assert_eq!(config.log.progress, None);
    assert_eq!(config.state.dir, Path::new("/var/lib/urlseen"));
}

#[test]
fn names_follow_the_crawl_unless_they_are_set() {
    let config = load("[source]\nkey = 'in'", &[("URLSEEN_CRAWL__NAME", "shop")], &[]).unwrap();
    assert_eq!(config.source.key, "in");
    assert_eq!(config.filter.key, "shop:filter");
    assert_eq!(config.sink.key, "shop:unseen");
    assert_eq!(config.rejects.key, "shop:rejected");
    assert_eq!(config.state.dir, Path::new("state/shop"));
}

#[test]
fn all_problems_show_at_once_by_origin() {
    let file = r#"
capacity = 1
[filter]
capacity = 0
capasity = 10
error_rate = 0.5
seed = "42"
layout = "imooc"
store = 'redis'
[source]
item = "pickle"
batch = "1000"
[fliter]
capacity = 10
"#;
    let env = [("URLSEEN_SOURCE__BATCH", "0"), ("URLSEEN_FILTER_CAPACITY", "1"), ("HOME", "/")];
    let lines = refused(file, &env, &["sink.emit", "sink.push_to=top", "crawl.nmae=x"]);
    assert_eq!(
        lines,
        [
            "config.toml:2:1: there is no key capacity; did you mean filter.capacity?",
            "config.toml:4:12: filter.capacity is 0; allowed: a whole number from 1 to \
             1_000_000_000_000",
            "config.toml:5:1: there is no key filter.capasity; did you mean filter.capacity?",
            "config.toml:6:14: filter.error_rate is 0.5; allowed: a number from 1e-12 to 0.1",
            "config.toml:7:8: filter.seed is \"42\"; allowed: \"random\", or a whole number from 0 \
             to 4_294_967_295 without quotes",
            "config.toml:8:10: filter.layout is \"imooc\", which is not in this version yet; \
             allowed now: native",
            "config.toml:9:9: filter.store is \"redis\", which is not in this version yet; \
             allowed now: local",
            "config.toml:11:8: source.item is \"pickle\", which is not in this version yet; \
             allowed now: auto, url, json, fingerprint, tab",
            "config.toml:12:9: source.batch is \"1000\", a string; allowed: a whole number from 1 \
             to 100_000",
            "config.toml:13:2: there is no section [fliter]; did you mean [filter]?",
            "environment URLSEEN_FILTER_CAPACITY: no key has this name, and what begins with \
             URLSEEN_ must have one's; did you mean URLSEEN_FILTER__CAPACITY?",
            "environment URLSEEN_SOURCE__BATCH: source.batch is \"0\"; allowed: a whole number \
             from 1 to 100_000",
            "--set crawl.nmae: there is no key crawl.nmae; did you mean crawl.name?",
            "--set sink.emit: has no value; write --set key=value, as in --set \
             filter.capacity=1e9",
            "--set sink.push_to: sink.push_to is \"top\"; allowed: left, right",
        ]
    );
    let problems = load(file, &[], &[]).unwrap_err().to_string();
    assert!(problems.ends_with("\n10 problems in the configuration, nothing was started"));
}

#[test]
fn a_section_is_a_section() {
    assert_eq!(
        refused("log = 'debug'\n[[filter]]\ncapacity = 1\n[sink.key]\nname = 'x'", &[], &[]),
        [
            "config.toml:1:1: log is a string; allowed: a section, which begins with the line \
             [log]",
            "config.toml:2:3: filter is an array; allowed: a section, which begins with the line \
             [filter]",
            "config.toml:4:1: sink.key is a table; allowed: a Redis key, not empty",
        ]
    );
}

#[test]
fn broken_toml_is_told_line_by_line_and_hides_no_other_layer() {
    let file = "[filter]\ncapacity = \nthreads = 1\nthreads = 2\n[sink\n[filter]\nbatch = x\n";
    assert_eq!(
        refused(file, &[("URLSEEN_LOG__LEVEL", "loud")], &["rejects.max_len=1"]),
        [
            "config.toml:2:12: not valid TOML: string values must be quoted, expected literal \
             string",
            "config.toml:4:1: not valid TOML: threads stands here for the second time",
            "config.toml:5:6: not valid TOML: unclosed table, expected `]`",
            "config.toml:6:2: not valid TOML: filter stands here for the second time",
            "config.toml:7:9: not valid TOML: string values must be quoted, expected literal \
             string",
            "environment URLSEEN_LOG__LEVEL: log.level is \"loud\"; allowed: error, warn, info, \
             debug, trace",
        ]
    );
}

#[test]
fn values_that_lose_to_a_later_layer_are_checked_too() {
    assert_eq!(
        refused("[filter]\nthreads = 65", &[], &["filter.threads=1"]),
        ["config.toml:2:11: filter.threads is 65; allowed: a whole number from 0 to 64"]
    );
}

#[test]
fn one_redis_key_has_one_use() {
    assert_eq!(
        refused("[sink]\nkey = 'demo:discovered'", &[], &["rejects.key=demo:discovered"]),
        [
            "config.toml:2:7: sink.key is \"demo:discovered\", and so is source.key (default); \
             allowed: a Redis key of its own for each",
            "--set rejects.key: rejects.key is \"demo:discovered\", and so is source.key \
             (default); allowed: a Redis key of its own for each",
            "--set rejects.key: rejects.key is \"demo:discovered\", and so is sink.key \
             (config.toml:2:7); allowed: a Redis key of its own for each",
        ]
    );
    // The default of a later key is not at fault for what an earlier one is set to.
    assert_eq!(
        refused("", &[], &["source.key=demo:unseen"]),
        ["--set source.key: source.key is \"demo:unseen\", and so is sink.key (default); \
          allowed: a Redis key of its own for each"]
    );
    assert!(load("", &[], &["crawl.name=urlseen"]).is_ok());
}

#[test]
fn the_keys_that_urlseen_keeps_for_itself_are_refused() {
    for key in ["urlseen:{demo:discovered}:state", "urlseen:x:lease", "urlseen:{a}b:taken"] {
        assert_eq!(
            refused("", &[], &[&format!("sink.key={key}")]),
            [format!(
                "--set sink.key: sink.key is {key:?}, which is a key of urlseen's own; allowed: \
                 any that is not urlseen:…:state, :lease or :taken"
            )]
        );
    }
}

#[test]
fn urls_can_be_emitted_only_of_items_that_have_one() {
    for item in ["fingerprint", "tab"] {
        assert_eq!(
            refused(&format!("source.item = '{item}'"), &[("URLSEEN_SINK__EMIT", "url")], &[]),
            [format!(
                "environment URLSEEN_SINK__EMIT: sink.emit is \"url\", but items have no URL where \
                 source.item is \"{item}\" (config.toml:1:15); allowed: sink.emit = \"item\", or \
                 another source.item"
            )]
        );
    }
    for item in ["auto", "url", "json"] {
        assert!(load("sink.emit = 'url'", &[], &[&format!("source.item={item}")]).is_ok());
    }
}

#[test]
fn a_batch_of_rejects_fits_their_list() {
    assert!(load("rejects.max_len = 1000", &[], &[]).is_ok());
    assert_eq!(
        refused("rejects.max_len = 999", &[], &[]),
        ["config.toml:1:19: rejects.max_len is 999, less than source.batch, 1000 (default); \
          allowed: at least as many, since all items of a batch may be rejects"]
    );
    // A batch that is refused itself says nothing about the list.
    assert_eq!(refused("rejects.max_len = 999", &[], &["source.batch=many"]).len(), 1);
}

#[test]
fn a_password_may_stand_in_the_file_or_the_environment() {
    let password = |config: Config| {
        let info = config.redis.url.connection_info().unwrap();
        info.redis_settings().password().map(str::to_owned)
    };
    let file = "redis.url = 'redis://:first@localhost'";
    let url = ("URLSEEN_REDIS__URL", "redis://:second@localhost");
    let alone = ("URLSEEN_REDIS_PASSWORD", "third");
    for (env, wanted) in [
        (vec![], "first"),
        (vec![url], "second"),
        (vec![alone], "third"),
        (vec![alone, url], "third"),
        (vec![("URLSEEN_REDIS_PASSWORD", "")], "first"),
    ] {
        let config = load(file, &env, &[]).unwrap();
        let shown = format!("{config:?} {config:#?} {}", config.redis.url);
        for secret in ["first", "second", "third"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(password(config).as_deref(), Some(wanted));
    }
}

#[test]
fn a_password_on_the_command_line_is_refused() {
    assert_eq!(
        refused("", &[], &["redis.url=redis://:hunter2@localhost"]),
        ["--set redis.url: redis.url is redis://***@localhost: a password on the command line \
          shows in the process list; put it in the environment as URLSEEN_REDIS_PASSWORD, or the \
          URL as URLSEEN_REDIS__URL"]
    );
    assert!(load("", &[], &["redis.url=redis://crawler@localhost"]).is_ok());
}

#[test]
fn no_problem_shows_a_password() {
    let file = r#"
"redis://:hunter2@localhost" = 1
redis.password = "hunter2"
redis.url = "redis://:hunter2@localhost:port"
redis.pasword = "hunter2"
password = "hunter2"
[redis_hunter]
password = "hunter2"
"#;
    let broken = [
        "[redis]\nurl = redis://:hunter2@localhost",
        "[redis]\nurl = \"redis://:hunter2@localhost",
        "[redis]\nurl \"redis://:hunter2@localhost\"",
        "[redis]\nurl = 'a'\nurl = 'redis://:hunter2@localhost'",
        "[redis]\nurl: redis://:hunter2@localhost",
        "[redis]\nurl = ['redis://:hunter2@localhost']",
        "[redis]\nurl = {password = 'hunter2'}",
    ];
    let env = [
        ("URLSEEN_REDIS__URL", "redis://:hunter2"),
        ("URLSEEN_REDIS__PASSWORD", "hunter2"),
        ("URLSEEN_REDIS_PASWORD", "hunter2"),
        ("URLSEEN_REDIS_PASSWORD", "hunter2"),
    ];
    let set = [
        "redis.url:redis://:hunter2@localhost",
        "redis.url redis://:hunter2@localhost",
        "redis.url:redis://:hunter2@localhost?a=b",
        "redis.password=hunter2",
        "redis.url=redis://:hunter2@",
        "redis.url=redis://:hunter2@localhost",
        "redis.url=unix:///socket?pass=hunter2&db=x",
    ];
    for file in std::iter::once(file).chain(broken) {
        let problems = load(file, &env, &set).unwrap_err();
        let shown = format!("{problems} {problems:?} {problems:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        println!("{problems}");
    }
}

#[test]
fn a_file_that_was_asked_for_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("latin1.toml"), b"[log]\nlevel = \"\xe9\"").unwrap();
    std::fs::write(at("bom.toml"), "\u{feff}[log]\r\nlevel = 'warn'\r\n").unwrap();
    std::fs::write(at("long.toml"), vec![b'\n'; (1 << 20) + 1]).unwrap();
    let load =
        |name: &str| Config::load(Sources { file: Some(at(name)), env: NOTHING, set: Vec::new() });
    let refused = |name: &str| {
        let problems = load(name).unwrap_err();
        let first = problems.iter().next().unwrap().to_string();
        first.strip_prefix(&at(name).display().to_string()).unwrap().to_owned()
    };
    assert!(refused("absent.toml").starts_with(": cannot be read: No such file"));
    assert_eq!(
        refused("latin1.toml"),
        ":2:10: is not UTF-8 from here on; save the file as UTF-8 text"
    );
    assert!(refused("long.toml").starts_with(": is longer than 1048576 bytes"));
    assert_eq!(load("bom.toml").unwrap().log.level, Level::Warn);

    let mut layers = Layers::default();
    layers.add_file(&at("absent.toml"), false);
    assert_eq!(Config::checked(layers), Ok(Config::default()));
}

#[cfg(unix)]
#[test]
fn variables_that_are_no_text_are_refused_only_where_they_are_ours() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let mut layers = Layers::default();
    layers.add_environment([
        (bytes(b"LANG\xff"), bytes(b"\xff")),
        (bytes(b"URLSEEN_CRAWL__NAME"), bytes(b"\xff")),
    ]);
    let problems = Config::checked(layers).unwrap_err().to_string();
    assert!(problems.starts_with(
        "environment URLSEEN_CRAWL__NAME: URLSEEN_CRAWL__NAME is not UTF-8; set it to UTF-8 text\n\
         1 problem in"
    ));
}
