//! `urlseen status` and `urlseen check`, with a running daemon, and without one from its folder.

use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, LEASE, stop, urls};
use crate::util::binary::{Output, Run, urlseen};
use crate::util::wait::{SOON, wait_until};

/// Runs `urlseen COMMAND --storage DIR ARGUMENTS…`.
fn ask(crawl: &Crawl, command: &str, arguments: &[&str]) -> Output {
    let run = urlseen([command, "--storage"]).arg(crawl.storage_dir());
    arguments.iter().fold(run, Run::arg).output()
}

fn status(crawl: &Crawl) -> Value {
    let output = ask(crawl, "status", &["--json"]);
    assert_eq!(output.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn verdicts(output: &Output) -> Vec<&str> {
    output.text().lines().map(|line| line.split('\t').next().unwrap()).collect()
}

#[test]
fn a_running_daemon_reports_its_state() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&[urls(0, 30), urls(0, 10)].concat());
    crawl.push(&["not an item"]);
    crawl.wait_until_idle();
    // The unreadable item is the last one. Lists and files are looked at from time to time.
    let mut told = status(&crawl);
    let has_all = |told: &Value| {
        told["counts"]["rejected"] == 1
            && told["lists"]["rejected"] == 1
            && told["storage"]["log_bytes"].as_u64() > Some(30 * 21)
    };
    wait_until(SOON, "reject", || {
        told = status(&crawl);
        has_all(&told)
    });
    assert_eq!(told["phase"]["name"], "working");
    assert_eq!(told["pid"], daemon.id());
    assert_eq!(told["crawl"], "demo");
    for (name, number) in [("unseen", 30), ("seen", 10), ("recoveries", 1), ("rollbacks", 0)] {
        assert_eq!(told["counts"][name], number, "{told}");
    }
    assert_eq!(told["filter"]["keys"], 30);
    assert_eq!(told["lists"]["sink"], 30);
    assert_eq!(
        (&told["storage"]["snapshots"], &told["storage"]["fsync"]),
        (&1.into(), &"interval".into())
    );
    let seq: String = redis::Commands::hget(&mut crawl.connection(), super::STATE, "seq").unwrap();
    assert_eq!(told["head"]["seq"].to_string(), seq);
    let lease = told["lease_seconds"].as_f64().unwrap();
    assert!((1.0..15.0).contains(&lease), "{lease}");
    let table = ask(&crawl, "status", &[]);
    assert!(table.text().contains("working"), "{table:?}");
    stop(daemon);
}

#[test]
fn status_and_check_write_nothing_with_and_without_a_daemon() {
    let crawl = Crawl::new().set("filter.capacity=2000").set("storage.snapshot_bytes=4096");
    let daemon = crawl.start();
    crawl.push(&urls(0, 1000));
    crawl.wait_until_idle();
    let told = |crawl: &Crawl| {
        let seen = ask(crawl, "check", &["http://example.com/7", "http://EXAMPLE.com/999#top"]);
        assert_eq!((seen.code(), verdicts(&seen)), (Some(0), vec!["seen", "seen"]), "{seen:?}");
        for _ in 0..2 {
            let mixed = ask(crawl, "check", &["http://example.com/7", "http://example.com/1000"]);
            assert_eq!((mixed.code(), verdicts(&mixed)), (Some(1), vec!["seen", "unseen"]));
        }
        let unseen = ask(crawl, "check", &["http://example.com/x"]);
        assert_eq!((unseen.code(), verdicts(&unseen)), (Some(1), vec!["unseen"]));
    };
    told(&crawl);
    stop(daemon);
    told(&crawl);
    let files = || {
        let all = std::fs::read_dir(crawl.storage_dir()).unwrap().map(|entry| entry.unwrap());
        let mut all: Vec<_> = all.map(|it| (it.file_name(), it.metadata().unwrap())).collect();
        all.sort_by_key(|(name, _)| name.clone());
        all.into_iter()
            .map(|(name, metadata)| (name, metadata.len(), metadata.modified().unwrap()))
            .collect::<Vec<_>>()
    };
    let before = files();
    told(&crawl);
    let shown = ask(&crawl, "status", &[]);
    assert!(shown.text().contains("log-"), "{shown:?}");
    assert_eq!(files(), before, "status and check change no file");
}

/// While commits wait, the daemon claims nothing, so only its question at the start tells the
/// length of the list.
#[test]
fn the_length_of_the_source_is_known_at_the_start() {
    let crawl = Crawl::new().set("source.batch=5").set("sink.max_len=5");
    crawl.push(&urls(0, 15));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: ", SOON);
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    crawl.push(&urls(15, 7));
    let daemon = crawl.start();
    wait_until(SOON, "phase", || status(&crawl)["phase"]["name"] == "backpressure");
    wait_until(SOON, "lengths", || {
        let lists = &status(&crawl)["lists"];
        (&lists["processing"], &lists["source"]) == (&10.into(), &7.into())
    });
    stop(daemon);
}

#[test]
fn a_standby_names_the_holder_of_the_lease() {
    let crawl = Crawl::new();
    let () = redis::Commands::set(&mut crawl.connection(), LEASE, "another program").unwrap();
    let mut daemon = crawl.run(&["--standby"]).start();
    daemon.wait_for_line("standing by", SOON);
    wait_until(SOON, "phase", || status(&crawl)["phase"]["name"] == "waiting-for-lease");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.output(SOON).code(), Some(0));
}

#[test]
fn the_status_has_the_limit_of_the_filter() {
    for (kind, most, limit) in [
        ("native", 0, Some(1000)),
        ("two-choice", 0, Some(5000)),
        ("two-choice", 30_000, Some(4608)),
        ("exact", 0, None),
        ("exact", 390_000, Some(14_336)),
    ] {
        let settings = ["filter.capacity=1000", "filter.grow_to=5000", "filter.error_rate=1e-3"];
        let crawl = settings.iter().fold(Crawl::new(), |crawl, set| crawl.set(set));
        let crawl = crawl.set(&format!("filter.kind={kind}"));
        let crawl = crawl.set(&format!("filter.max_memory={most}"));
        let daemon = crawl.start();
        assert_eq!(status(&crawl)["filter"]["limit"].as_u64(), limit, "{kind}");
        stop(daemon);
    }
}
