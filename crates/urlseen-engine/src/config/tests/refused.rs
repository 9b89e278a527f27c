//! Tests of refused configurations and their messages.

use super::{load, refused};

#[test]
fn all_problems_show_at_once_by_origin() {
    let file = r#"
capacity = 1
[filter]
capacity = 0
capasity = 10
error_rate = 0.5
seed = "42"
kind = "bloom"
place = 'disk'
[source]
item = "jsonl"
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
            "config.toml:8:8: filter.kind is \"bloom\"; allowed: native, two-choice, \
             exact, redisbloom, imooc, pyrebloom, luw2007-bloomfilter, scrapy-redis-bloomfilter, \
             scrapy-redis-bloomfilter-block-cluster, redisson, redis-lua-scaling, scrapy-redis",
            "config.toml:9:9: filter.place is \"disk\"; allowed: local, redis",
            "config.toml:11:8: source.item is \"jsonl\"; allowed: auto, url, json, fingerprint, \
             tab, pickle",
            "config.toml:12:9: source.batch is \"1000\", a string; allowed: a whole number from 1 \
             to 100_000",
            "config.toml:13:2: there is no section [fliter]; did you mean [filter]?",
            "environment URLSEEN_FILTER_CAPACITY: no key has this name, and variables that begin \
             with URLSEEN_ must name a key; did you mean URLSEEN_FILTER__CAPACITY?",
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
fn a_section_must_be_a_table() {
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
    let file = "[filter]\ncapacity = \nthreads = 1\nthreads = 2\n[sink\n[filter]\nbatch = x\n\
                level = \"C:\\wrong \\twice\\qed\"\n";
    assert_eq!(
        refused(file, &[("URLSEEN_LOG__LEVEL", "loud")], &["rejects.max_len=1"]),
        [
            "config.toml:2:12: not valid TOML: string values must be quoted, expected literal \
             string",
            "config.toml:4:1: not valid TOML: threads is here for the second time; delete one",
            "config.toml:5:6: not valid TOML: unclosed table, expected `]`",
            "config.toml:6:2: not valid TOML: filter is here for the second time; delete one",
            "config.toml:7:9: not valid TOML: string values must be quoted, expected literal \
             string",
            "config.toml:8:13: not valid TOML: missing escaped value, expected `b`, `e`, `f`, \
             `n`, `r`, `\\`, `\"`, `x`, `u`, `U`",
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
fn commits_wait_for_at_most_ten_replicas() {
    assert!(load("", &[], &["redis.wait_replicas=10"]).is_ok());
    assert_eq!(
        refused("redis.wait_replicas = 11", &[], &[]),
        ["config.toml:1:23: redis.wait_replicas is 11; allowed: a whole number from 0 to 10"]
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
    // If a key is set to the default of a later key, the problem names the earlier key.
    assert_eq!(
        refused("", &[], &["source.key=demo:unseen"]),
        ["--set source.key: source.key is \"demo:unseen\", and so is sink.key (default); \
          allowed: a Redis key of its own for each"]
    );
    assert!(load("", &[], &["crawl.name=urlseen"]).is_ok());
}

#[test]
fn keys_that_urlseen_uses_for_its_own_records_are_refused() {
    for key in [
        "urlseen:{demo:discovered}:state",
        "urlseen:x:lease",
        "urlseen:{a}b:processing",
        "urlseen:{f}:spec",
    ] {
        assert_eq!(
            refused("", &[], &[&format!("sink.key={key}")]),
            [format!(
                "--set sink.key: sink.key is {key:?}, which is a key of urlseen's own; allowed: \
                 any that is not urlseen:…:state, :lease, :processing or :spec"
            )]
        );
    }
}

#[test]
fn urls_can_be_emitted_only_of_items_that_have_one() {
    for (item, emit) in [("fingerprint", "url"), ("tab", "url"), ("tab", "start-url")] {
        assert_eq!(
            refused(&format!("source.item = '{item}'"), &[("URLSEEN_SINK__EMIT", emit)], &[]),
            [format!(
                "environment URLSEEN_SINK__EMIT: sink.emit is \"{emit}\", but items have no URL \
                 if source.item is \"{item}\" (config.toml:1:15); allowed: sink.emit = \
                 \"item\", or another source.item"
            )]
        );
    }
    for item in ["auto", "url", "json", "pickle"] {
        for emit in ["url", "start-url"] {
            let item = format!("source.item={item}");
            assert!(load(&format!("sink.emit = '{emit}'"), &[], &[&item]).is_ok());
        }
    }
}

#[test]
fn rules_are_refused_one_by_one() {
    let file = r#"
[[pass]]
name = "lists"
host = '^www\.'
[[pass]]
name = "lists"
path = '('
[[pass]]
name = "lists"
path = 'a'
[[pass]]
hots = 'b'
[[pass]]
path = 5
[[pass]]
path = '(a{1000}){1000}'
[[pass]]
name = "none"
"#;
    assert_eq!(
        refused(file, &[("URLSEEN_PASS__NAME", "a")], &["pass.name=a"]),
        [
            "config.toml:7:8: [[pass]] has path = \"(\": not a regular expression: unclosed group",
            "config.toml:8:1: [[pass]] has the name \"lists\", as another rule has; give each its \
             own",
            "config.toml:11:1: [[pass]] is for no pages; give at least one of scheme, host, path, \
             extension",
            "config.toml:12:1: there is no key pass.hots; did you mean pass.host?",
            "config.toml:14:8: [[pass]] has path = 5; allowed: a text in quotes",
            "config.toml:16:8: [[pass]] has path = \"(a{1000}){1000}\": compiled, it takes more \
             than 1048576 bytes; write a simpler one",
            "config.toml:17:1: [[pass]] is for no pages; give at least one of scheme, host, path, \
             extension",
            "environment URLSEEN_PASS__NAME: no key has this name, and variables that begin with \
             URLSEEN_ must name a key; did you mean URLSEEN_CRAWL__NAME?",
            "--set pass.name: there is no key pass.name; did you mean crawl.name?",
        ]
    );
    assert_eq!(
        refused("pass = [5]\n[[pas]]\n", &[], &[]),
        [
            "config.toml:1:9: [[pass]] holds a number; allowed: name, scheme, host, path, \
             extension",
            "config.toml:2:3: there is no key pas"
        ]
    );
    assert_eq!(
        refused("[pass]\nname = 'a'", &[], &[]),
        ["config.toml:1:1: [[pass]] is a table; allowed: rules that each begin with the line \
          [[pass]]"]
    );
    let rule = |number| format!("[[pass]]\nname = '{number}'\nhost = 'a'\n");
    let rules = |count| (0..count).map(rule).collect::<String>();
    assert_eq!(load(&rules(100), &[], &[]).unwrap().pass.len(), 100);
    let lines = refused(&rules(102), &[], &[]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("is here more than 100 times; combine rules"), "{lines:?}");
}

#[test]
fn rules_without_a_name_are_named_by_their_patterns() {
    let file = "[[drop]]\nscheme = '^(mailto|tel)$'\n[[drop]]\nhost = '^a$'\nextension = '^zip$'\n";
    let names: Vec<_> = load(file, &[], &[]).unwrap().drop.iter().map(|it| &it.name[..]).collect();
    assert_eq!(names, ["scheme = '^(mailto|tel)$'", "host = '^a$', extension = '^zip$'"]);
    let long = format!("[[drop]]\npath = '{}'\n", "a".repeat(100));
    let file = "[[drop]]\nscheme = 'a'\n".repeat(2) + &long + "[[drop]]\nname = 'all'\n";
    assert_eq!(
        refused(&file, &[], &[]),
        [
            "config.toml:3:1: [[drop]] has the name \"scheme = 'a'\", as another rule has; give \
             each its own",
            "config.toml:5:1: [[drop]] has no name of 1 to 100 bytes, as in name = \"x\"",
            "config.toml:7:1: [[drop]] is for no pages; give at least one of scheme, host, path, \
             extension",
        ]
    );
}

#[test]
fn wrong_rules_of_equal_urls_are_refused_with_their_lines() {
    let file = "[[same]]\nfold = ['slash']\n[[same]]\nhost = 'h'\n[[same]]\ndrop_params = 'sid'\n\
                [[same]]\nhost = '('\nkeep_params = ['']\n[[same]]\nkeep_params = ['']\n\
                [[same]]\nfolds = ['www']\n[[same]]\nhost = ['h']\nfold = ['www']\n";
    let lines = refused(file, &[], &[]);
    let expected = [
        "config.toml:1:1: [[same]] fold: \"slash\" is not known; allowed: scheme, www, matrix, \
         case, index, trailing-slash",
        "config.toml:3:1: [[same]] changes nothing; give drop_params, keep_params or fold",
        "config.toml:6:15: [[same]] has drop_params = \"sid\"; allowed: an array of texts in \
         quotes",
        "config.toml:8:8: [[same]] has host = \"(\": not a regular expression: unclosed group",
        "config.toml:10:1: [[same]] keep_params has a name of 0 bytes; allowed: 1 to 200",
        "config.toml:13:1: there is no key same.folds; did you mean same.fold?",
        "config.toml:15:8: [[same]] has host = an array; allowed: a text in quotes",
    ];
    assert_eq!(lines, expected);
    let long = "x".repeat(4000);
    let rules = format!("[[same]]\npath = '{long}'\nfold = ['www']\n");
    assert!(load(&rules.repeat(16), &[], &[]).is_ok());
    let lines = refused(&rules.repeat(17), &[], &[]);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("config.toml:49:1: [[same]] as JSON, all rules have "),
        "{lines:?}"
    );
    let none = load("", &[], &[]).unwrap().fingerprint_spec();
    let all = load("[[same]]\nfold = ['www']\n", &[], &[]).unwrap().fingerprint_spec();
    assert!(none.same.is_empty() && all.same.to_string() == r#"[{"fold":["www"]}]"#);
}

#[test]
fn push_to_is_refused_for_a_sorted_set() {
    let file = "[sink]\nkind = 'zset'\n";
    assert_eq!(
        refused(file, &[], &["sink.push_to=left"]),
        ["--set sink.push_to: sink.push_to is \"left\", but sink.kind is \"zset\" \
          (config.toml:2:8), which has no ends: items are sorted by their priority; leave \
          sink.push_to out, or set sink.kind = \"list\""]
    );
    assert!(load(file, &[], &["sink.push_to=right"]).is_ok());
}

#[test]
fn kinds_that_live_in_redis_have_no_local_filter() {
    for kind in ["imooc", "pyrebloom", "scrapy-redis-bloomfilter", "scrapy-redis"] {
        assert_eq!(
            refused(&format!("filter.kind = '{kind}'"), &[], &[]),
            [format!(
                "config.toml:1:15: filter.kind is \"{kind}\", and filter.place is \"local\" \
                 (default), where no filter of that kind can be; allowed: filter.place = \
                 \"redis\", or filter.kind = \"native\", \"two-choice\", \"exact\", \"redisbloom\""
            )]
        );
        assert!(load(&format!("filter.kind = '{kind}'"), &[], &["filter.place=redis"]).is_ok());
    }
    assert!(load("filter.kind = 'redisbloom'", &[], &[]).is_ok());
    assert_eq!(
        refused("filter.kind = 'redisbloom'", &[], &["filter.place=redis"]),
        ["config.toml:1:15: filter.kind is \"redisbloom\", and filter.place is \"redis\" \
             (--set filter.place), where no filter of that kind can be; allowed: filter.place = \
             \"local\", or filter.kind = \"native\", \"imooc\", \"pyrebloom\", \
             \"luw2007-bloomfilter\", \"scrapy-redis-bloomfilter\", \
             \"scrapy-redis-bloomfilter-block-cluster\", \"redisson\", \"redis-lua-scaling\", \
             \"scrapy-redis\""]
    );
    assert!(load("filter.place = 'redis'", &[], &[]).is_ok());
}

#[test]
fn a_rejects_list_shorter_than_a_batch_is_refused() {
    assert!(load("rejects.max_len = 1000", &[], &[]).is_ok());
    assert_eq!(
        refused("rejects.max_len = 999", &[], &[]),
        ["config.toml:1:19: rejects.max_len is 999, less than source.batch, 1000 (default); \
          allowed: at least as many, since all items of a batch may be rejects"]
    );
    // If the batch size is refused, the list causes no second problem.
    assert_eq!(refused("rejects.max_len = 999", &[], &["source.batch=many"]).len(), 1);
}

#[test]
fn files_without_encryption_and_unreadable_files_are_refused() {
    let file = "[redis]\ntls_ca = '/nowhere/ca.pem'\ntls_cert = '/nowhere/a.pem'\n";
    let missing = "the file cannot be read: No such file or directory (os error 2)";
    let ca = format!("config.toml:2:10: redis.tls_ca is \"/nowhere/ca.pem\": {missing}");
    let cert = format!("config.toml:3:12: redis.tls_cert is \"/nowhere/a.pem\": {missing}");
    let alone = "config.toml:3:12: redis.tls_cert is \"/nowhere/a.pem\": redis.tls_key is missing, \
                 and a certificate works only with its key";
    assert_eq!(refused(file, &[], &["redis.url=rediss://host"]), [&ca, &cert, alone]);
    let plain = |key: &str, path: &str| {
        format!(
            "{key} is \"{path}\", but redis.url is \"redis://127.0.0.1:6379/0\" (default), \
             which is not encrypted; write rediss:// in redis.url, or leave {key} out"
        )
    };
    let first = format!("config.toml:2:10: {}", plain("redis.tls_ca", "/nowhere/ca.pem"));
    let second = format!("config.toml:3:12: {}", plain("redis.tls_cert", "/nowhere/a.pem"));
    assert_eq!(refused(file, &[], &[]), [&first, &ca, &second, &cert, alone]);
    let lines = refused("", &[("URLSEEN_REDIS__TLS_KEY", "3")], &["redis.tls_ca=a\0b"]);
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[test]
fn times_that_the_filter_cannot_keep_are_refused() {
    let filter = "[filter]\nkind = 'two-choice'\nexpire_after = '30d'\n";
    let rules = r#"[[expire]]
host = '^news\.'
expire_after = "1d"
[[expire]]
path = '^/archive/'
expire_after = "never"
[[expire]]
path = 'a'
expire_after = "31d"
[[expire]]
path = 'b'
[[expire]]
path = 'c'
expire_after = "1500ms"
[[expire]]
expire_after = "6d"
[[expire]]
name = "d"
path = 'd'
"#;
    let no_time = "[[expire]] has no time in whole seconds, as in expire_after = \"1d\" or \
                   expire_after = \"never\"";
    assert_eq!(
        refused(&format!("{filter}{rules}"), &[], &[]),
        [
            "config.toml:4:1: [[expire]] has expire_after = \"1d\", and filter.expire_after is \
             \"30d\"; allowed: \"never\", or a fifth of filter.expire_after to all of it, \"6d\" \
             to \"30d\"",
            "config.toml:10:1: [[expire]] has expire_after = \"31d\", and filter.expire_after is \
             \"30d\"; allowed: \"never\", or a fifth of filter.expire_after to all of it, \"6d\" \
             to \"30d\"",
            &format!("config.toml:13:1: {no_time}"),
            &format!("config.toml:15:1: {no_time}"),
            "config.toml:18:1: [[expire]] is for no pages; give at least one of scheme, host, \
             path, extension",
            "config.toml:21:1: there is no key expire.name",
        ]
    );
    assert_eq!(
        refused("[[expire]]\nhost = 'a'\nexpire_after = '6d'", &[], &[]),
        ["config.toml:1:1: [[expire]] needs filter.expire_after, which is not set"]
    );
}
