//! Recovery: starts with every state of the storage folder, and rollbacks of Redis during a run.
//!
//! The numbered points are those of `ARCHITECTURE.md`, "Why nothing is lost or repeated".

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, READY, SINK, STATE, Summary, stop, urls};
use crate::util::wait::{SOON, wait_until};

/// Makes a crawl that takes a snapshot every few hundred unseen items.
fn with_snapshots() -> Crawl {
    Crawl::new()
        .set("filter.capacity=1000")
        .set("storage.snapshot_bytes=4096")
        .set("source.batch=20")
}

/// Returns the messages of a run that must fail.
#[track_caller]
fn refused(crawl: &Crawl, words: &[&str]) -> String {
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    for words in words {
        let count = output.stderr.matches(words).count();
        assert_eq!(count, 1, "{words:?} in {}", output.stderr);
    }
    output.stderr
}

/// Runs `urlseen storage …`, which must succeed.
#[track_caller]
fn storage(crawl: &Crawl, command: &str) -> String {
    let output = crawl.command(&format!("storage {command}"), &[]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

#[test]
fn a_restarted_daemon_knows_earlier_items() {
    for crawl in [Crawl::new(), with_snapshots()] {
        crawl.push(&urls(0, 1500));
        assert_eq!(crawl.drain().count("unseen"), 1500);
        crawl.push(&urls(0, 1510));
        let summary = crawl.drain();
        assert_eq!(summary.count("unseen"), 10, "{summary:?}");
        assert!(summary.stderr.contains("The filter was recovered in "), "{summary:?}");
        assert_eq!(crawl.len(SINK), 1510);
    }
}

/// Points 5 and 7 of ARCHITECTURE.md: the filter follows a rollback of Redis. The second time,
/// Redis goes back to before the start of the daemon.
#[test]
fn a_running_daemon_follows_a_redis_that_went_back() {
    let mut crawl = with_snapshots();
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 500));
    crawl.wait_until_idle();
    crawl.server.cli(&["save"]);
    crawl.push(&urls(500, 500));
    crawl.wait_until_idle();
    for save in ["of the run", "of an earlier run"] {
        crawl.server.restart();
        daemon.wait_for_line("came back with older data", SOON);
        wait_until(SOON, "recovery", || daemon.stderr().matches(READY).count() == 2);
        assert_eq!(crawl.len(SINK), 500);
        crawl.push(&urls(0, 1000));
        crawl.wait_for_sink(1000);
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!((summary.count("rollbacks"), summary.count("recoveries")), (1, 2));
        let expected: Vec<_> = urls(0, 1000).into_iter().map(String::into_bytes).collect();
        assert!(crawl.list(SINK) == expected, "{save}: {}", crawl.len(SINK));
        daemon = crawl.start();
        crawl.wait_until_idle();
    }
    // Batches that Redis lost were tested again, and are now kept.
    crawl.push(&urls(0, 1000));
    crawl.wait_until_idle();
    assert_eq!(stop(daemon).count("seen"), 1000);
    // The next start follows Redis, too.
    crawl.server.restart();
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().count("unseen"), 500);
}

#[test]
fn a_crawl_that_lost_its_keys_or_its_folder_stops_and_has_two_remedies() {
    for (way, unseen) in [("adopt", 10), ("reset --yes", 110)] {
        let mut crawl = Crawl::new();
        crawl.push(&urls(0, 100));
        crawl.drain();
        crawl.server.restart();
        crawl.push(&urls(0, 110));
        let remedy = "urlseen storage adopt";
        refused(&crawl, &["Redis knows nothing of this crawl", "stands at batch ", remedy]);
        assert_eq!(crawl.len(SINK), 0);
        storage(&crawl, way);
        assert_eq!(crawl.drain().count("unseen"), unseen, "{way}");

        std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
        crawl.push(&urls(0, 120));
        refused(&crawl, &["Redis stands at batch ", "is new", remedy]);
        assert_eq!(crawl.len(SINK), unseen);
        storage(&crawl, way);
        // No filter knows the emitted items.
        assert_eq!(crawl.drain().count("unseen"), 120, "{way}");
    }
}

/// Point 11 of ARCHITECTURE.md: unreadable data may have contained commits, so the daemon does not
/// treat the crawl as new.
#[test]
fn a_damaged_log_is_not_taken_for_an_empty_one() {
    let mut crawl = Crawl::new();
    crawl.push(&urls(0, 100));
    crawl.drain();
    let mut logs = std::fs::read_dir(crawl.storage_dir()).unwrap().map(|it| it.unwrap().path());
    let log = logs.find(|path| path.to_string_lossy().contains("/log-")).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    // This byte is in the first record.
    bytes[150] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    refused(&crawl, &["Redis stands at batch ", "log-00000000000000000001 at byte 48"]);
    crawl.server.restart();
    refused(&crawl, &["Redis knows nothing of this crawl"]);
}

#[test]
fn a_running_daemon_ends_if_redis_lost_everything() {
    let mut crawl = Crawl::new();
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_until_idle();
    crawl.server.restart();
    daemon.wait_for_line("Redis knows nothing of this crawl", SOON);
    assert_eq!(daemon.output(SOON).code(), Some(3));
    assert!(crawl.dump().is_empty());
}

#[test]
fn a_deleted_state_is_not_taken_for_a_new_crawl() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_until_idle();
    let () = crawl.connection().del(STATE).unwrap();
    crawl.push(&urls(10, 10));
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("Redis knows nothing of this crawl"), "{output:?}");
    assert_eq!((crawl.len(SINK), crawl.len(super::PROCESSING)), (10, 10));
}

/// At batch 0 no folder belongs to the crawl yet, so no fingerprint is lost.
#[test]
fn a_crawl_without_commits_accepts_any_folder_and_keeps_it() {
    let crawl = Crawl::new();
    crawl.drain();
    std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
    for count in [10, 20] {
        crawl.push(&urls(0, count));
        assert_eq!(crawl.drain().count("unseen"), 10);
    }
}

#[test]
fn a_folder_of_another_crawl_is_refused() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 10));
    crawl.drain();
    let other = Crawl::new();
    other.push(&urls(0, 10));
    other.drain();
    std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
    std::fs::rename(other.storage_dir(), crawl.storage_dir()).unwrap();
    refused(&crawl, &["belongs to the filter", "the folder of another crawl"]);
    storage(&crawl, "adopt");
    crawl.push(&urls(0, 20));
    assert_eq!(crawl.drain().count("unseen"), 10);
}

/// Copies the storage folder.
fn copy_of(crawl: &Crawl) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(crawl.storage_dir()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    copy
}

/// Replaces the storage folder with a copy.
fn put_back(crawl: &Crawl, copy: &tempfile::TempDir) {
    std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
    std::fs::create_dir(crawl.storage_dir()).unwrap();
    for entry in std::fs::read_dir(copy.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), crawl.storage_dir().join(entry.file_name())).unwrap();
    }
}

#[test]
fn an_old_copy_of_the_folder_is_reported_with_its_gap() {
    for way in ["adopt", "on_rollback"] {
        let crawl = Crawl::new().set("source.batch=10");
        crawl.push(&urls(0, 100));
        crawl.drain();
        let copy = copy_of(&crawl);
        crawl.push(&urls(100, 50));
        crawl.drain();
        put_back(&crawl, &copy);
        crawl.push(&urls(0, 160));
        refused(&crawl, &["Redis stands at batch 15 (", "batch 10 (", "5 batches"]);
        let crawl = if way == "adopt" {
            storage(&crawl, way);
            crawl
        } else {
            crawl.set("storage.on_rollback=emit-again")
        };
        let summary = crawl.drain();
        assert_eq!(summary.count("unseen"), 60, "{way} {summary:?}");
        crawl.push(&urls(0, 160));
        assert_eq!(crawl.drain().count("unseen"), 0, "{way}");
    }
}

/// Point 5 of ARCHITECTURE.md: the `commit_id` distinguishes histories of the same length.
#[test]
fn another_history_of_the_same_length_is_noticed() {
    let mut crawl = Crawl::new();
    crawl.push(&urls(0, 10));
    crawl.drain();
    crawl.server.cli(&["save"]);
    let copy = copy_of(&crawl);
    crawl.push(&urls(10, 10));
    crawl.drain();
    let other = copy_of(&crawl);
    put_back(&crawl, &copy);
    crawl.server.restart();
    crawl.push(&urls(20, 10));
    crawl.drain();
    put_back(&crawl, &other);
    refused(&crawl, &["Redis stands at batch 2 (", "two histories"]);
    storage(&crawl, "adopt");
    crawl.push(&urls(0, 30));
    // The folder has the batch that Redis lost, and lacks the batch that Redis has.
    assert_eq!(crawl.drain().count("unseen"), 10);
}

#[test]
fn a_crawl_can_be_dropped() {
    let crawl = Crawl::new().set("sink.max_len=5").set("source.batch=5");
    crawl.push(&urls(0, 20));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: ", SOON);
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    assert_eq!((crawl.len(SINK), crawl.len(super::PROCESSING)), (5, 15));
    storage(&crawl, "drop --yes");
    assert_eq!((crawl.len(SINK), crawl.len(super::SOURCE)), (5, 15));
    assert!(!crawl.connection().exists::<_, bool>(STATE).unwrap());
    let crawl = crawl.set("sink.max_len=0").set("filter.capacity=5000");
    crawl.push(&urls(0, 20));
    assert_eq!(crawl.drain().count("unseen"), 20);
}

#[test]
fn an_irreversible_command_asks_first() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 10));
    crawl.drain();
    for command in ["storage reset", "storage drop"] {
        let output = crawl.command(command, &[]).output();
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(output.stderr.contains("give --yes"), "{output:?}");
    }
    crawl.push(&urls(0, 10));
    assert_eq!(crawl.drain().count("unseen"), 0);
}

#[test]
fn a_folder_with_other_parameters_is_refused_with_both_values() {
    let crawl = Crawl::new().set("filter.kind=native").set("filter.seed=7");
    crawl.push(&urls(0, 10));
    crawl.drain();
    for (setting, words) in [
        ("filter.capacity=200_000", ["filter.capacity", "100000", "200000"]),
        ("filter.error_rate=1e-6", ["filter.error_rate", "1e-12", "1e-6"]),
        ("filter.seed=8", ["filter.seed", "7", "8"]),
        ("fingerprint.algorithm=scrapy-2.6", ["fingerprint.algorithm", "scrapy", "scrapy-2.6"]),
        ("fingerprint.keep_fragments=true", ["fingerprint.keep_fragments", "false", "true"]),
    ] {
        let output = crawl.run(&["--drain", "--set", setting]).output();
        assert_eq!(output.code(), Some(2), "{output:?}");
        for words in words {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
    }
    let named = crawl.run(&["--drain", "--set", "crawl.name=other"]).output();
    assert_eq!(named.code(), Some(2), "{named:?}");
    // Without a configured seed, the daemon uses the seed of the folder.
    crawl.push(&urls(0, 20));
    let summary =
        Summary::of(crawl.run(&["--drain", "--json", "--set", "filter.seed=random"]).output());
    assert_eq!(summary.count("unseen"), 10);
}

#[test]
fn a_folder_in_use_is_refused_with_its_user() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    let stderr = refused(&crawl, &["is in use"]);
    assert!(stderr.contains(&format!("process {} on ", daemon.id())), "{stderr}");
    for command in ["storage adopt", "storage reset --yes", "storage drop --yes"] {
        let output = crawl.command(command, &[]).output();
        assert_eq!(output.code(), Some(3), "{output:?}");
    }
    // This command is permitted beside a running daemon.
    let shown = storage(&crawl, "show");
    for words in ["crawl       demo", "in use by   process", "snapshot-", "log-"] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }
    stop(daemon);
}

#[test]
fn snapshots_are_taken_and_pruned_while_items_pass() {
    let crawl = with_snapshots().set("filter.capacity=20000").set("storage.snapshot_bytes=50_000");
    let mut daemon = crawl.start();
    for part in 0..5 {
        crawl.push(&urls(3000 * part, 3000));
        wait_until(SOON, "snapshot", || daemon.stderr().matches("snapshot-").count() > part);
    }
    crawl.wait_for_sink(15_000);
    crawl.wait_until_idle();
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let output = crawl.command("storage show", &[]).output();
    let shown = output.text();
    // The kill may have come at the start of the next log file. Then no data is lost.
    let is_begun = |line: &str| line.ends_with("the header was never written to its end");
    let mut damages = shown.lines().filter(|line| line.starts_with("damaged"));
    assert!(damages.all(is_begun), "{shown}");
    let snapshots = shown.lines().filter(|line| line.starts_with("snapshot ")).count();
    assert!((3..=5).contains(&snapshots), "{shown}");
    crawl.push(&urls(0, 15_100));
    assert_eq!(crawl.drain().count("unseen"), 100);
}
