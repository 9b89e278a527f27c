//! Tests of messages about unknown names, and of files that are not valid TOML.

use super::{load, refused};

#[track_caller]
fn problems(toml: &str, env: &[(&str, &str)], set: &[&str]) -> Vec<String> {
    let problems = load(toml, env, set).expect_err("refused").to_string();
    problems.lines().map(str::to_owned).filter(|line| line.contains(": ")).collect()
}

#[test]
fn a_message_about_an_unknown_name_has_the_names_that_exist() {
    let file = "[log]\nlvl = 1\n[logs]\n[[drop]]\nhosts = 'a'\nhost = 'a'";
    let names = "the sections are crawl, redis, partitions, source, fingerprint, filter, sink, \
                 rejects, over_limit, forget, held, serve, storage, admin, log, and the rules are \
                 [[same]], [[pass]], [[drop]], [[limit]], [[expire]]";
    assert_eq!(
        problems(file, &[("URLSEEN_HELD__TIME", "1"), ("URLSEEN_X", "")], &["held.x=1"]),
        [
            "config.toml:2:1: there is no key log.lvl; did you mean log.level? ([log] has the keys \
             level, format, progress)"
                .to_owned(),
            format!("config.toml:3:2: there is no section [logs]; did you mean [log]? ({names})"),
            "config.toml:5:1: there is no key drop.hosts; did you mean drop.host? ([[drop]] has \
             the keys name, scheme, host, path, extension)"
                .to_owned(),
            "environment URLSEEN_HELD__TIME: no key has this name, and variables that begin with \
             URLSEEN_ must name a key; did you mean URLSEEN_HELD__TIMEOUT? ([held] has the keys \
             timeout, deliveries)"
                .to_owned(),
            format!(
                "environment URLSEEN_X: no key has this name, and variables that begin with \
                 URLSEEN_ must name a key; {names}"
            ),
            "--set held.x: there is no key held.x; [held] has the keys timeout, deliveries"
                .to_owned(),
        ]
    );
}

#[test]
fn a_line_that_is_not_toml_hides_no_problem_of_other_lines() {
    let file = "[filter]\ncapacity = \nthreads = 99\nkindd = 1\n[source]\nbatch = 'x\n\
                linger = '1y'\n[fliter]\na = 1\n[[drop]]\nhost = '('\n[log]\nlevel = 'loud'\n";
    assert_eq!(
        refused(file, &[], &["log.format=xml"]),
        [
            "config.toml:2:12: not valid TOML: string values must be quoted, expected literal \
             string",
            "config.toml:3:11: filter.threads is 99; allowed: a whole number from 0 to 64",
            "config.toml:4:1: there is no key filter.kindd; did you mean filter.kind?",
            "config.toml:6:11: not valid TOML: invalid literal string, expected `'`",
            "config.toml:7:10: source.linger is \"1y\"; allowed: \"0s\" (off), or from \"1ms\" to \
             \"1s\", with its unit: ms, s, m or h",
            "config.toml:8:2: there is no section [fliter]; did you mean [filter]?",
            "config.toml:13:9: log.level is \"loud\"; allowed: error, warn, info, debug, trace",
            "--set log.format: log.format is \"xml\"; allowed: text, json",
        ]
    );
}
