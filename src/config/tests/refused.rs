//! Tests of refused configurations and their messages.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::load;

/// Runs the cases of `refused.txt`. After its title, a case has environment variables and arguments
/// (`$`), the configuration file (`|`), and the problems (`=>`), without the names that exist.
/// `ACCEPT=1` writes the problems of this version: then check the difference.
#[test]
fn configurations_are_refused_with_their_messages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/refused.txt");
    let then = fs::read_to_string(&path).unwrap();
    let mut now = String::new();
    for case in then.split_inclusive("\n\n") {
        let lines = |mark| case.lines().filter_map(move |line| line.strip_prefix(mark));
        let toml: String = lines("|").flat_map(|line| [line.trim_start(), "\n"]).collect();
        let set: Vec<_> = lines("$ --set ").collect();
        let env = lines("$ ").filter(|line| !line.starts_with("--set "));
        let env: Vec<_> = env.filter_map(|line| line.split_once('=')).collect();
        let problems = match load(&toml, &env, &set) {
            Ok(_) => "no problem\n".to_owned(),
            Err(problems) => problems.to_string(),
        };
        now += &case[..case.find("=>").expect("the problems of the case")];
        let count = |line: &&str| !line.ends_with("in the configuration, nothing was started");
        for problem in problems.lines().filter(count) {
            writeln!(now, "=> {}", without_names(problem)).unwrap();
        }
        now += "\n";
    }
    now.pop();
    if std::env::var_os("ACCEPT").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let different = then.lines().zip(now.lines()).find(|(then, now)| then != now);
    assert!(then == now, "(then, now): {different:?}");
}

/// Cuts off the names that exist, at the end of a message about an unknown name.
fn without_names(line: &str) -> &str {
    let starts = [" ([", "; [", " (the sections are", "; the sections are"];
    let names = starts.iter().filter_map(|start| line.find(start)).min();
    &line[..names.unwrap_or(line.len())]
}

#[test]
fn a_message_about_an_unknown_name_has_the_names_that_exist() {
    let file = "[log]\nlvl = 1\n[logs]\n[[drop]]\nhosts = 'a'\nhost = 'a'";
    let env = [("URLSEEN_HELD__TIME", "1"), ("URLSEEN_X", "")];
    let refused = load(file, &env, &["held.x=1"]).unwrap_err().to_string();
    let ends = [
        "did you mean log.level? ([log] has the keys level, format, progress)",
        "log, and the rules are [[same]], [[pass]], [[drop]], [[limit]], [[expire]])",
        "did you mean drop.host? ([[drop]] has the keys name, scheme, host, path, extension)",
        "did you mean URLSEEN_HELD__TIMEOUT? ([held] has the keys timeout, deliveries)",
        "and the rules are [[same]], [[pass]], [[drop]], [[limit]], [[expire]]",
        "there is no key held.x; [held] has the keys timeout, deliveries",
        "6 problems in the configuration, nothing was started",
    ];
    assert_eq!(refused.lines().count(), ends.len());
    for (line, end) in refused.lines().zip(ends) {
        assert!(line.ends_with(end), "{line}");
    }
}

#[test]
fn there_are_at_most_a_hundred_rules_of_a_kind() {
    let rule = |number| format!("[[pass]]\nname = '{number}'\nhost = 'a'\n");
    let rules = |count| (0..count).map(rule).collect::<String>();
    assert_eq!(load(&rules(100), &[], &[]).unwrap().rules.pass.len(), 100);
    let refused = load(&rules(102), &[], &[]).unwrap_err().to_string();
    assert!(refused.contains("is here more than 100 times; combine rules\n1 problem"), "{refused}");
}

#[test]
fn rules_without_a_name_are_named_by_their_patterns() {
    let file = "[[drop]]\nscheme = '^(mailto|tel)$'\n[[drop]]\nhost = '^a$'\nextension = '^zip$'\n";
    let drop = load(file, &[], &[]).unwrap().rules.drop;
    let names: Vec<_> = drop.iter().map(|it| &it.name[..]).collect();
    assert_eq!(names, ["scheme = '^(mailto|tel)$'", "host = '^a$', extension = '^zip$'"]);
}

#[test]
fn rules_of_equal_urls_have_a_bound_as_json() {
    let rule = format!("[[same]]\npath = '{}'\nfold = ['www']\n", "x".repeat(4000));
    assert!(load(&rule.repeat(16), &[], &[]).is_ok());
    let refused = load(&rule.repeat(17), &[], &[]).unwrap_err().to_string();
    let start = "config.toml:49:1: [[same]] as JSON, all rules have ";
    assert!(refused.starts_with(start) && refused.lines().count() == 2, "{refused}");
}

#[test]
fn a_limit_is_named_by_its_scope_unless_it_has_a_name() {
    let file = "[[limit]]\nby = 'host'\nmax = 10\n\
                [[limit]]\nby = 'pattern'\npath = '^/a'\nmax = 1\n\
                [[limit]]\nname = 'p'\nby = 'parameter'\nparameter = 'page'\nmax = 5\n";
    let config = load(file, &[], &[]).unwrap();
    let rules = config.rules.limits.iter().map(|rule| (&rule.name[..], rule.max));
    let expected = [(r#"by = "host""#, 10), (r#"by = "pattern" path = '^/a'"#, 1), ("p", 5)];
    assert_eq!(rules.collect::<Vec<_>>(), expected);
}

fn is_divided(settings: &[&str]) -> bool {
    load("", &[], settings).unwrap().divided().is_some()
}

#[test]
fn only_a_cluster_needs_all_keys_of_the_crawl_in_one_slot() {
    let tagged = [
        "redis.url=redis+cluster://a,b",
        "source.key={demo}:discovered",
        "sink.key={demo}:unseen",
        "rejects.key={demo}:rejected",
        "forget.key={demo}:forget",
    ];
    assert!(!is_divided(&[]));
    assert!(!is_divided(&["redis.url=redis+sentinel://a,b/main"]));
    assert!(is_divided(&tagged[..1]));
    assert!(!is_divided(&tagged));
    for number in 1..tagged.len() {
        let without = [&tagged[..number], &tagged[number + 1..]].concat();
        assert!(is_divided(&without), "{without:?}");
    }
}

#[test]
fn a_filter_in_redis_needs_a_tag_of_its_own() {
    let common = [
        "redis.url=redis+cluster://a,b",
        "filter.place=redis",
        "source.key={demo}:discovered",
        "sink.key={demo}:unseen",
        "rejects.key={demo}:rejected",
    ];
    for (filter, expected) in
        [("demo:filter", true), ("demo", true), ("{other}:f", true), ("{demo}:f", false)]
    {
        let filter = format!("filter.key={filter}");
        assert_eq!(is_divided(&[&common[..], &[&filter]].concat()), expected, "{filter}");
    }
}
