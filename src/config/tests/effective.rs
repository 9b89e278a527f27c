//! Tests of the effective values and their origins.

use super::super::*;
use super::layers;

fn effective(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Effective {
    Effective::of(layers(toml, env, set)).unwrap()
}

/// Returns the keys with their values.
fn values(effective: &Effective) -> Vec<(&'static str, &serde_json::Value)> {
    effective.values.iter().map(|it| (it.key, &it.value)).collect()
}

#[test]
fn the_printed_file_has_the_same_values_and_rules() {
    let changed = r#"
        [crawl]
        name = "a \"b\" ünï"
        [partitions]
        run = "0"
        [source]
        linger = "0s"
        [filter]
        kind = "two-choice"
        error_rate = 1e-12
        expire_after = "30d"
        seed = 7
        [serve]
        listen = "[::1]:6390"
        keys = ["a", "b,c"]
        [held]
        timeout = "90s"
        [admin]
        listen = "localhost:0"
        [[same]]
        drop_params = ["sid"]
        fold = ["www"]
        [[drop]]
        path = '^/a"\d'
        [[drop]]
        scheme = "^mailto$"
        [[expire]]
        host = "x"
        expire_after = "6d"
    "#;
    let limits = "[partitions]\ncount = 4\nrun = 'ordinal/2'\n[[limit]]\nby = 'host'\nmax = 10";
    for file in ["", changed, limits] {
        let before = effective(file, &[], &[]);
        let printed = before.to_toml();
        let after = effective(&printed, &[], &[]);
        assert_eq!(values(&before), values(&after), "{printed}");
        let rules = |effective: &Effective| -> Vec<_> {
            effective.rules.iter().map(|rule| (rule.kind, rule.values.clone())).collect()
        };
        assert_eq!(rules(&before), rules(&after), "{printed}");
        let [before, after] = [file, &printed].map(|file| super::load(file, &[], &[]).unwrap());
        assert_eq!(before.filter, after.filter, "{printed}");
        assert_eq!((before.serve, before.rules), (after.serve, after.rules), "{printed}");
    }
}

#[test]
fn the_last_layer_is_the_origin() {
    let env = [("URLSEEN_FILTER__CAPACITY", "2000"), ("URLSEEN_SERVE_PASSWORD", "hunter2")];
    let file = "[filter]\ncapacity = 1000\nthreads = 1\n[redis]\nurl = 'redis://:hunter2@a'";
    let shown = effective(file, &env, &["log.level=warn"]);
    let origins = shown.values.iter().filter(|it| it.origin != ValueOrigin::Default);
    let origins: Vec<_> = origins.map(|it| format!("{} {}", it.key, it.origin)).collect();
    assert_eq!(
        origins,
        [
            "redis.url config.toml:5:7",
            "filter.capacity environment URLSEEN_FILTER__CAPACITY",
            "filter.threads config.toml:3:11",
            "log.level --set log.level",
        ]
    );
    let passwords: Vec<_> =
        shown.passwords.iter().map(|(server, origin)| format!("{server} {origin}")).collect();
    assert_eq!(passwords, ["redis config.toml:5:7", "serve environment URLSEEN_SERVE_PASSWORD"]);
    assert!(!format!("{shown:?} {}", shown.to_toml()).contains("hunter2"));
}

#[test]
fn a_refused_configuration_has_no_effective_values() {
    let file = "[[expire]]\nhost = 'a'\nexpire_after = '1d'";
    let problems = Effective::of(layers(file, &[], &[])).unwrap_err();
    assert_eq!(Err(&problems), super::load(file, &[], &[]).as_ref());
    assert!(problems.to_string().contains("needs filter.expire_after"), "{problems}");
}

#[test]
fn a_time_that_is_off_is_shown_as_documented() {
    let shown = effective("[log]\nprogress = '0ms'", &[], &["source.linger=0h"]);
    for key in ["log.progress", "source.linger"] {
        assert!(values(&shown).contains(&(key, &"0s".into())), "{key}");
    }
}
