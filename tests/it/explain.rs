//! `urlseen explain` without a filter, and with a filter in a daemon, in a folder and in Redis.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::{Crawl, stop};
use crate::util::binary::{Output, urlseen};

/// Parses the output of `urlseen explain --json`.
#[track_caller]
fn json(output: &Output) -> Value {
    let read = serde_json::from_slice(&output.stdout);
    read.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[track_caller]
fn of(crawl: &Crawl, item: &str) -> Value {
    let output = crawl.command("explain", &["--json", item]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    json(&output)
}

const URL: &str = "HTTP://Example.com?b=2&a=1#top";
const FINGERPRINT: &str = "4c9e1aa2eb2b1b4bd2a1f8a4b1c6d9f1b5f5b8a0";

/// Returns the verdict of an explanation, and true if the verdict is certain.
fn answer_of(explained: &Value) -> (&str, bool) {
    let answer = &explained["answer"];
    (answer["verdict"].as_str().unwrap(), answer["is_certain"].as_bool().unwrap())
}

#[test]
fn a_url_is_explained_without_a_daemon() {
    let output = urlseen(["explain", "--all", URL]).output();
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let mut said = output.text();
    for part in [
        "item           HTTP://Example.com?b=2&a=1#top\nform           url\n",
        "request        GET HTTP://Example.com?b=2&a=1#top, no body\n",
        "steps          1. scheme in lower case: the scheme is written in lower case \
         (w3lib.url.safe_url_string)\n",
        "                  - HTTP://Example.com?b=2&a=1#top\n",
        "                  + http://Example.com?b=2&a=1#top\n",
        "4. query sorted: fields are sorted by their decoded bytes, key then value \
         (w3lib.url.canonicalize_url)\n",
        "5. fragment dropped: ",
        "canonical      http://example.com/?a=1&b=2\n",
        "fingerprints   scrapy        ",
        "   (in use)\n               scrapy-2.6    ",
        "               scrapy-redis  ",
        "seen           unknown: storage/demo holds no filter yet\n",
        "ignored        headers and cookies\n",
        "the same       http://example.com/?a=1&b=2   (the canonical URL itself)\n",
        "others         http://example.com:80/?a=1&b=2   (the default port, written out)",
    ] {
        let at = said.find(part).unwrap_or_else(|| panic!("no {part:?} in {said}"));
        said = &said[at..];
    }
    let fingerprint = urlseen(["fingerprint"]).stdin(URL).output();
    assert!(output.text().contains(fingerprint.text().trim()), "{fingerprint:?}");
}

#[test]
fn an_unreadable_item_has_a_reason_and_is_bad_input() {
    for (item, reason) in [
        ("HTTP://h:99999/", "the port is over 65535"),
        ("{\"url\":1}", "`url` is"),
        ("", "the item is empty"),
    ] {
        let output = urlseen(["explain", "--json", item]).output();
        assert_eq!(output.code(), Some(1), "{output:?}");
        let explained = json(&output);
        assert!(explained["unreadable"].as_str().unwrap().contains(reason), "{explained}");
        let output = urlseen(["explain", item]).output();
        assert_eq!(output.code(), Some(1), "{output:?}");
        assert!(output.text().contains("\nrejected       "), "{output:?}");
    }
    let output = urlseen(["explain", "http://h/\u{1b}[2J\u{202e}"]).output();
    assert!(!output.text().contains(['\u{1b}', '\u{202e}']), "{output:?}");
    let piped = urlseen(["explain", "--json", "-"]).stdin("http://h/\n").output();
    assert_eq!(json(&piped)["item"], "http://h/");
}

#[test]
fn two_items_are_compared() {
    let two = |one: &str, other: &str| {
        let output = urlseen(["explain", "--json", one, other]).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        json(&output)["between"].clone()
    };
    let same = two(URL, "http://example.com/?a=1&b=2");
    assert_eq!(same["verdicts"][0]["same"], true);
    assert_eq!(same["rules"].as_array().unwrap().len(), 5, "{same}");
    let different = two("http://h/?a=1", "http://h/?a=2");
    assert_eq!(different["verdicts"][2]["difference"]["what"], "field of the query");
    let output = urlseen(["explain", "http://h/", "https://h/"]).output();
    let verdict = "the two are    scrapy        different requests   (in use)\n                  \
                   scheme: `http` and `https`\n\nitem           http://h/\n";
    assert!(output.text().starts_with(verdict), "{}", output.text());
    let whole = urlseen(["explain", "--all", "http://h/", "https://h/"]).output();
    assert!(whole.text().contains("\n               scrapy-redis  different"), "{}", whole.text());
}

#[test]
fn an_explanation_is_short_unless_the_rest_is_asked_for() {
    let output = urlseen(["explain", "http://h/"]).output();
    let fingerprint = urlseen(["fingerprint"]).stdin("http://h/").output();
    let expected = format!(
        "item           http://h/\nform           url\n\
         request        GET http://h/, no body\ncanonical      http://h/, unchanged\n\
         fingerprints   scrapy        {}   (in use)\n\
         seen           unknown: storage/demo holds no filter yet\n",
        fingerprint.text().trim()
    );
    assert_eq!(output.text(), expected);
}

#[test]
fn a_rule_that_lets_an_item_pass_is_named() {
    let folder = TempDir::new().unwrap();
    let config = "[[pass]]\nname = \"lists\"\npath = '^/list/'\n";
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let output = urlseen(["explain", "http://h/list/1"]).dir(folder.path()).output();
    let expected = "passes         unchecked and unrecorded: the rule \"lists\" ([[pass]]) fits\n";
    assert!(output.text().contains(expected), "{}", output.text());
    assert!(!output.text().contains("\nseen "), "{}", output.text());
}

#[test]
fn a_rule_that_drops_an_item_is_named() {
    let folder = TempDir::new().unwrap();
    let config = "[[drop]]\nscheme = '^mailto$'\n";
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let output = urlseen(["explain", "mailto:a@b.c"]).dir(folder.path()).output();
    let expected = "dropped        the rule \"scheme = '^mailto$'\" ([[drop]]) fits\n";
    assert!(output.text().contains(expected), "{}", output.text());
    assert!(!output.text().contains("\nrejected "), "{}", output.text());
}

#[test]
fn rules_that_make_urls_the_same_are_shown_step_by_step() {
    let folder = TempDir::new().unwrap();
    let config = "[fingerprint]\ndrop_tracking = '2026-11'\n[[same]]\nhost = 'a'\n\
                  fold = ['www', 'trailing-slash']\n[[same]]\ndrop_params = ['sid']\n";
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let explain =
        |items: &[&str]| urlseen([&["explain"], items].concat()).dir(folder.path()).output();
    let one = "http://www.a.x/p/?gclid=1&q=2";
    let expected = "\
rules          1. [[same]] 1: host = 'a': www. before the host is dropped
                  - http://www.a.x/p/?gclid=1&q=2
                  + http://a.x/p/?gclid=1&q=2
               2. [[same]] 1: host = 'a': slashes at the end of the path are dropped
                  - http://a.x/p/?gclid=1&q=2
                  + http://a.x/p?gclid=1&q=2
               3. fingerprint.drop_tracking: parameters of the query are dropped
                  - http://a.x/p?gclid=1&q=2
                  + http://a.x/p?q=2
hashed         http://a.x/p?q=2
";
    let output = explain(&[one]);
    assert!(output.text().contains(expected), "{}", output.text());
    let output = explain(&[one, "http://a.x/p?q=2&sid=3"]);
    let scrapy = output.text().lines().find(|line| line.starts_with("the two are")).unwrap();
    assert!(scrapy.ends_with("scrapy        the same request   (in use)"), "{}", output.text());
    let rules = "rules          [[same]] 1: host = 'a': www. before the host is dropped\n";
    assert!(output.text().contains(rules), "{}", output.text());
    let rule = "[[same]] 2: parameters of the query are dropped\n";
    assert!(output.text().contains(rule), "{}", output.text());
    let output = explain(&[one, "http://a.x/p?q=3"]);
    assert!(output.text().contains("field of the query: `q=2` and `q=3`"), "{}", output.text());
    // Without a rule for the host, nothing is shown.
    assert!(!explain(&["http://b.x/p/"]).text().contains("\nhashed "));
}

#[test]
fn an_explanation_asks_the_daemon_or_its_folder() {
    let crawl = Crawl::new().set("filter.kind=native");
    crawl.push(&[URL]);
    crawl.drain();
    let unseen = "http://example.com/unseen";
    let check = |says: &str| {
        let explained = of(&crawl, URL);
        assert_eq!(answer_of(&explained), ("seen", true), "{explained}");
        let how_sure = explained["answer"]["how_sure"].as_str().unwrap();
        assert!(
            how_sure.contains("the log recorded it as unseen (record 1, batch 1 "),
            "{how_sure}"
        );
        assert!(explained["answer"]["says"].as_str().unwrap().contains(says), "{explained}");
        let explained = of(&crawl, unseen);
        assert_eq!(answer_of(&explained), ("unseen", true), "{explained}");
    };
    check("at rest");
    let daemon = crawl.start();
    check("the daemon of the crawl \"demo\"");
    crawl.push(&[unseen]);
    crawl.wait_for_sink(2);
    assert_eq!(answer_of(&of(&crawl, unseen)), ("seen", true));
    let forgotten = crawl.command("forget", &[unseen]).output();
    assert_eq!(forgotten.code(), Some(0), "{forgotten:?}");
    crate::util::wait::wait_until(crate::util::wait::SOON, "forgotten item", || {
        answer_of(&of(&crawl, unseen)).0 == "unseen"
    });
    let explained = of(&crawl, unseen);
    assert!(explained["answer"]["how_sure"].as_str().unwrap().contains("forgotten"));
    drop(daemon);
}

#[test]
fn a_seen_url_has_the_time_at_which_it_passes_again() {
    let crawl = Crawl::new().set("filter.kind=two-choice").set("filter.expire_after=30d");
    let daemon = crawl.start();
    crawl.push(&[URL]);
    crawl.wait_for_sink(1);
    let again = || {
        let answer = of(&crawl, URL)["answer"].take();
        let again = answer["passes_again"].as_str().map(humantime::parse_rfc3339);
        (again.map(Result::unwrap), answer["how_sure"].as_str().unwrap().to_owned())
    };
    let (running, words) = again();
    let (running, day) = (running.unwrap(), Duration::from_hours(24));
    let left = running.duration_since(SystemTime::now()).unwrap();
    assert!((30 * day..=36 * day).contains(&left), "{left:?}");
    assert!(words.ends_with(" UTC") && words.contains("passes again from 20"), "{words}");
    stop(daemon);
    let (at_rest, words) = again();
    let apart = running.max(at_rest.unwrap()).duration_since(running.min(at_rest.unwrap()));
    assert!(apart.unwrap() < Duration::from_secs(1), "{running:?}, {at_rest:?}");
    assert!(words.ends_with(" UTC, if the clocks agree at the next start"), "{words}");
    std::fs::remove_file(crawl.storage_dir().join("clock")).unwrap();
    let (unknown, words) = again();
    assert_eq!(unknown, None);
    assert!(words.contains("No clock tells when this is"), "{words}");
}

/// If the log does not name a URL, the answer "seen" is not certain. The probability that it is
/// wrong depends on the fill of the filter.
#[test]
fn without_a_log_certainty_depends_on_the_fill() {
    let crawl = Crawl::new().set("filter.kind=native");
    let crawl = crawl.set("filter.capacity=1000").set("filter.error_rate=0.1");
    let redis = Crawl::new().set("filter.place=redis").set("filter.seed=7");
    let redis = redis.set("filter.capacity=1000").set("filter.error_rate=0.1");
    for crawl in [&crawl, &redis] {
        let items: Vec<String> = (0..60_000).map(|n| format!("http://example.com/{n}")).collect();
        crawl.push(&items);
        crawl.drain();
    }
    // The log names none of these URLs.
    let mut believed = 0;
    for number in 0..60 {
        let explained = of(&crawl, &format!("http://example.com/other/{number}"));
        if answer_of(&explained).0 == "seen" {
            assert_eq!(answer_of(&explained), ("seen", false), "{explained}");
            let said = &explained["answer"];
            let rate = said["error_rate"].as_f64().unwrap();
            assert!((0.1..0.99).contains(&rate), "{said}");
            assert!(said["how_sure"].as_str().unwrap().contains("above the configured one"));
            believed += 1;
        }
    }
    assert!(believed > 5, "{believed}");
    let explained = of(&redis, "http://example.com/1");
    assert_eq!(answer_of(&explained), ("seen", false), "{explained}");
    assert!(explained["answer"]["says"].as_str().unwrap().contains("demo:filter in Redis"));
}

#[test]
fn filters_of_other_kinds_are_asked() {
    let sizes = ["filter.capacity=1M", "filter.bit=20"];
    for (kind, size) in ["pyrebloom", "scrapy-redis-bloomfilter"].into_iter().zip(sizes) {
        let crawl = Crawl::new().set("filter.place=redis").set(size);
        let crawl = crawl.set(&format!("filter.kind={kind}"));
        let missing = of(&crawl, URL);
        assert_eq!(answer_of(&missing), ("unknown", false), "{missing}");
        crawl.push(&[URL]);
        crawl.drain();
        let explained = of(&crawl, URL);
        assert_eq!(answer_of(&explained).0, "seen", "{explained}");
    }
    let crawl = Crawl::new().set("filter.place=redis").set("filter.kind=scrapy-redis");
    crawl.push(&[URL]);
    crawl.drain();
    let explained = of(&crawl, URL);
    assert_eq!(answer_of(&explained), ("seen", true), "{explained}");
    assert_eq!(explained["answer"]["how_sure"], "certain: it is an exact set");
}

#[test]
fn an_item_with_its_fingerprint_is_explained_by_this_fingerprint() {
    let output = urlseen(["explain", "--json", &format!("{FINGERPRINT}\tpayload")]).output();
    let explained = json(&output);
    assert_eq!((&explained["form"], &explained["given"]), (&"tab".into(), &FINGERPRINT.into()));
    assert_eq!(explained["fingerprint"], FINGERPRINT);
    assert_eq!(explained["same"][0]["item"], FINGERPRINT);
    assert!(explained["ignored"][0].as_str().unwrap().contains("payload"));
}

#[test]
fn an_item_names_the_limits_that_count_it() {
    let folder = tempfile::TempDir::new().unwrap();
    let rules = "[[limit]]\nname = 'hosts'\nby = 'host'\nmax = 9\n\
                 [[limit]]\nname = 'days'\nby = 'pattern'\npath = '^/cal/'\nmax = 3\n";
    std::fs::write(folder.path().join("config.toml"), rules).unwrap();
    let explain = |url: &str| urlseen(["explain", url]).dir(folder.path()).output();
    let explained = explain("http://A.x/cal/2026-11-26?b");
    for line in [
        "limits         at most 9 of a.x, by the rule \"hosts\"",
        "3 of a.x/cal/*, by the rule \"days\"",
    ] {
        assert!(explained.text().contains(line), "{line}: {explained:?}");
    }
    assert!(!explain("mailto:a@b.c").text().contains("limits"));
}
