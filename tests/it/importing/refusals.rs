//! Refusals of an import before its start.

use std::path::Path;

use super::{Crawl, SET, frames, hex, import_to, raw};
use crate::util::binary::urlseen;
use crate::util::wait::SOON;

#[test]
fn a_key_of_another_type_is_refused_by_name() {
    let crawl = Crawl::new();
    crawl.server.cli(&["rpush", SET, "a"]);
    for (key, words) in [
        (SET, "urlseen: the key demo:dupefilter holds a list, and a set was expected"),
        ("other", "urlseen: there is no key other at unix:"),
    ] {
        let output =
            crawl.command("import", &["--redis-set", key, "--algorithm", "scrapy"]).output();
        assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
        assert!(output.stderr.starts_with(words), "{output:?}");
        assert_eq!(output.stderr.lines().count(), 1);
    }
}

#[test]
fn a_folder_that_a_daemon_uses_is_refused_and_the_daemon_named() {
    let crawl = Crawl::new();
    crawl.write("requests.seen", frames(raw(0..10)));
    let mut daemon = crawl.command("run", &[]).start();
    daemon.wait_for_line("the lease is taken", SOON);
    let output = crawl.command("import", &["requests.seen"]).output();
    assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
    let words = format!("is in use by process {}", daemon.id());
    assert!(output.stderr.contains(&words), "{output:?}");
}

#[test]
fn a_filter_with_other_parameters_is_refused() {
    let crawl = Crawl::new();
    crawl.write("requests.seen", frames(raw(0..10)));
    let state = crawl.state();
    let made = ["--capacity", "1000", "--algorithm", "scrapy-2.6"];
    let run = import_to(state.as_ref(), &made).arg(crawl.path("requests.seen"));
    assert_eq!(run.output().code(), Some(0));
    for other in [["--grow-to", "2000"], ["--algorithm", "scrapy"], ["--error-rate", "1e-9"]] {
        let output = import_to(state.as_ref(), &other).arg(crawl.path("requests.seen")).output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        assert!(output.stderr.contains("was made for something else"), "{output:?}");
    }
    let output = crawl.command("import", &["requests.seen"]).output();
    assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
}

/// If the crawl computed other fingerprints than the imported ones, it would fetch every page
/// again. So the user states the algorithm, and the folder records it for daemons and spiders.
#[test]
fn fingerprints_of_another_algorithm_are_refused_with_the_remedy() {
    let mut crawl = Crawl::new();
    let digests: Vec<String> = raw(0..10).map(|digest| hex(&digest)).collect();
    crawl.add(&digests);
    crawl.write("requests.seen", frames(raw(0..10)));
    for (arguments, algorithm) in [
        (&["--redis-set", SET][..], "scrapy-redis"),
        (&["--redis-set", SET, "--algorithm", "scrapy-2.6"], "scrapy-2.6"),
        (&["--algorithm", "scrapy-redis", "requests.seen"], "scrapy-redis"),
    ] {
        let output = crawl.command("import", arguments).output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        for words in [
            "the crawl would not recognise any URL",
            &format!("Set fingerprint.algorithm = \"{algorithm}\" first"),
        ] {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
        assert!(!Path::new(&crawl.state()).exists());
    }
    let scrapy = crawl.settings.clone();
    crawl.settings.push("fingerprint.algorithm=scrapy-redis");
    crawl.import(&["--redis-set", SET]).check([10, 10, 0, 0]);
    let configured = std::mem::replace(&mut crawl.settings, scrapy);
    let output = crawl.command("run", &["--drain"]).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    for words in ["was made for something else", "fingerprint.algorithm", "scrapy-redis"] {
        assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
    }
    crawl.settings = configured;
    crawl.crawl(&[]);
    let record = "urlseen:{demo:discovered}:crawl";
    assert_eq!(crawl.server.cli(&["hget", record, "algorithm"]), "scrapy-redis");
}

#[test]
fn conflicting_options_are_refused() {
    for (arguments, words) in [
        (&["--redis-set", "a", "file"][..], "'--redis-set <KEY>' cannot be used with '[FILE]...'"),
        (&["--redis-set", "a", "--storage", "b"], "cannot be used with"),
        (&["--redis-set", "a", "--format", "hex"], "cannot be used with"),
        (&["--capacity", "1000"], "--storage <DIR>"),
        (&["--grow-to", "1000"], "--storage <DIR>"),
        (&["--storage", "a", "--redisbloom-file", "b", "--grow-to", "9"], "cannot be used with"),
        (&["--storage", "a", "--set", "b=c"], "cannot be used with"),
        (&["--format", "csv"], "possible values: auto, hex, requests-seen"),
    ] {
        let output = urlseen(["import"]).args(arguments).output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn a_missing_file_ends_an_import_after_the_files_before() {
    let crawl = Crawl::new();
    crawl.write("requests.seen", frames(raw(0..10)));
    let output = crawl.command("import", &["requests.seen", "missing"]).output();
    assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
    let words = "urlseen: stopped after 10 fingerprints: repeat the command to continue: \
        cannot open missing: ";
    assert!(output.stderr.starts_with(words), "{output:?}");
    crawl.write("missing", frames(raw(5..20)));
    let rest = crawl.import(&["requests.seen", "missing"]);
    assert_eq!((rest.counts(), rest.code), ([15, 10, 5, 0], Some(0)));
}
