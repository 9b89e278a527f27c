//! `urlseen status` and `urlseen check` with a test endpoint.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use urlseen_cli::admin::{Phase, Status};

use super::{Endpoint, status};
use crate::util::binary::{Output, Run, urlseen};

fn run(command: &str, endpoint: &Endpoint) -> Run {
    urlseen([command, "--storage"]).arg(endpoint.folder.path())
}

#[test]
fn status_prints_a_table() {
    let endpoint = Endpoint::new();
    let trouble = "lost the connection: \u{1b}[2J gone".to_owned();
    endpoint.set(Phase::RedisAway { trouble });
    let output = run("status", &endpoint).output();
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let mut lines = output.text().lines().collect::<Vec<_>>();
    let place = lines.iter().position(|line| line.starts_with("process ")).unwrap();
    let process = lines.remove(place);
    assert!(process.starts_with("process      4711, urlseen 1.2.3, for "), "{process}");
    assert!(process.contains("years "), "{process}");
    assert_eq!(lines.pop(), Some("archive      51 B; with the log it is complete"));
    let state = lines.pop().unwrap();
    assert!(state.starts_with("storage      storage/demo: snapshots: 3, the last one "), "{state}");
    assert!(state.ends_with(" ago; log: 41 B, fsync = interval"), "{state}");
    let expected = "\
crawl        a \"crawl\"
phase        waiting for Redis: lost the connection: \\u{1b}[2J gone
source                    21   items wait to be claimed (as of 26 s ago)
processing                22   items are claimed and not committed
sink                      23   unseen items wait for crawlers (as of at most 26 s ago)
rejects                   24   unreadable items wait for a decision (as of at most 26 s ago)
waiting           at most 8s   is the age of the oldest uncommitted item
held                      32   requests held at the last count; consumers: 2
filter                    31   fingerprints, 25.0 % of 124; error rate now about 1.0e-6; 4.00 KiB
                about 2.5e-7   of the error rate: the frozen native filter
                  about 0.50   URLs lost so far, by expectation
                    about 1h   until it holds 248, at the speed of the last minutes
                          61   is the generation; the next one begins in 1m 30s
                               fingerprints by age: 25, 0, 3, 0, 0, 1; expired: 2; swept: 9
                          16   of these were forgotten and pass again
items                     47   committed since the start; of these
  unseen                   1   pushed to the sink
  seen                     2   not pushed
  unfiltered               3   pushed to the sink unchecked (dont_filter)
                          12   of these by the rule \"list pages\"
  dropped                 18   by rules
                          18   of these by the rule \"scheme = '^mailto$'\"
  over limit              19   unseen, dropped by limits
                          19   of these by the rule \"hosts\"
                          14   of these of the group \"shop.example\" of the rule \"hosts\"
  rejected                 4   unreadable
                          26   have a fingerprint of their own, which stays as it is
batches                    6   committed since the start
                           5   rejects were dropped from a full list
                           7   batches were not committed and were tested again
                           9   rollbacks, because Redis came back with older data
                          28   snapshots could not be taken
asked                     59   since the start; of these
  seen                    13   answered as seen
  unseen                  14   answered as unseen, and added if the client asked for that
  full                    15   refused: no room
  forgotten               17   forgotten: they pass again
clients                    3   are connected; since the start: accepted 33, refused 1
redis        redis://ann:***@127.0.0.1:6379/0
batch        17 (00000000000000ab)
lease        held for 12 s unless it is renewed";
    assert_eq!(lines, expected.lines().collect::<Vec<_>>());
}

#[test]
fn status_as_json_is_the_daemons_answer() {
    let endpoint = Endpoint::new();
    let output = run("status", &endpoint).arg("--json").output();
    let back: Status = serde_json::from_str(output.text()).unwrap();
    assert_eq!(back, status(Phase::Working));
    let trouble = Phase::RedisAway { trouble: "\u{9b}31m \u{1b}\n".to_owned() };
    endpoint.set(trouble.clone());
    let output = run("status", &endpoint).arg("--json").output();
    assert!(output.text().chars().all(|c| c == '\n' || !c.is_control()), "{output:?}");
    assert_eq!(serde_json::from_str::<Status>(output.text()).unwrap(), status(trouble));
}

#[test]
fn status_uses_the_storage_folder_of_the_configuration() {
    let endpoint = Endpoint::new();
    let config = TempDir::new().unwrap();
    let dir = endpoint.folder.path().display();
    fs::write(config.path().join("config.toml"), format!("[storage]\ndir = '{dir}'")).unwrap();
    let by_default = urlseen(["status"]).dir(config.path());
    let by_name = urlseen(["status", "--config"]).arg(config.path().join("config.toml"));
    let set = urlseen(["status", "--set"]).arg(format!("storage.dir={dir}"));
    let by_environment = urlseen(["status"]).env("URLSEEN_STORAGE__DIR", dir.to_string());
    for run in [by_default, by_name, set, by_environment] {
        let output = run.output();
        assert_eq!(output.code(), Some(0), "{output:?}");
    }
    let output = run("status", &endpoint).arg("--config").arg("config.toml").output();
    assert_eq!(output.code(), Some(2), "{output:?}");
}

#[test]
fn a_missing_daemon_is_reported() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    for command in [&["status"][..], &["check", "http://a/"]] {
        let output = urlseen(command).arg("--storage").arg(&missing).output();
        assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
        let said = format!("no daemon is running on the storage folder {}", missing.display());
        assert!(output.stderr.contains(&said), "{}", output.stderr);
        assert!(!missing.exists(), "asking makes no folder");
    }
    let output = urlseen(["check", "http://a/", "--storage"]).arg(folder.path()).output();
    assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
    assert!(output.stderr.contains("the storage folder is new"), "{output:?}");
    let output = urlseen(["status", "--storage"]).arg(folder.path()).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stderr.contains("no daemon is running"), "{output:?}");
    assert!(output.text().contains("the folder is new"), "{output:?}");
}

#[test]
fn the_exit_status_of_health_is_0_while_the_daemon_has_not_failed() {
    let endpoint = Endpoint::new();
    let health = || run("status", &endpoint).arg("--health").output();
    for phase in [Phase::Working, Phase::RedisAway { trouble: String::new() }] {
        endpoint.set(phase);
        let output = health();
        assert_eq!((output.code(), output.text(), &*output.stderr), (Some(0), "", ""));
    }
    endpoint.set(Phase::Failed { reason: "no room".to_owned() });
    let output = health();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("the daemon answered: failed: no room"), "{output:?}");
    let folder = TempDir::new().unwrap();
    let output = urlseen(["status", "--health", "--storage"]).arg(folder.path()).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("no daemon is running"), "{output:?}");
    let output = urlseen(["status", "--health", "--set", "filter.place=redis"]).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("set admin.listen"), "{output:?}");
}

fn checked(output: &Output) -> (Option<i32>, Vec<&str>) {
    (output.code(), output.text().lines().collect())
}

#[test]
fn the_exit_status_of_check_is_0_if_all_items_are_seen() {
    let endpoint = Endpoint::new();
    let check = |items: &[&str]| items.iter().fold(run("check", &endpoint), Run::arg).output();
    assert_eq!(checked(&check(&["s1", "s2"])), (Some(0), vec!["seen\ts1\ts1", "seen\ts2\ts2"]));
    let mixed = check(&["s1", "u1", "d"]);
    let rows = vec!["seen\ts1\ts1", "unseen\tu1\tu1", "unfiltered\t-\td"];
    assert_eq!(checked(&mixed), (Some(1), rows));
    assert_eq!(check(&[]).code(), Some(2));
    let piped = run("check", &endpoint).arg("s1").arg("-").stdin("s2\nu1\n\ns3").output();
    let rows = ["seen\ts1\ts1", "seen\ts2\ts2", "unseen\tu1\tu1", "unseen\t\t", "seen\ts3\ts3"];
    assert_eq!(checked(&piped), (Some(1), rows.to_vec()));
    let odd = run("check", &endpoint).arg("-").stdin(b"\xff\x1b\n").output();
    assert_eq!((odd.code(), odd.stdout.as_slice()), (Some(1), &b"unreadable\t-\t\xff\x1b\n"[..]));
    assert_eq!(odd.stderr, "urlseen: \\xff\\u{1b}: [255, 27]\n");
}

#[test]
fn check_prints_a_json_object_for_each_item() {
    let endpoint = Endpoint::new();
    let output = run("check", &endpoint).arg("--json").arg("-").stdin(b"s\n\xff\n").output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    let rows = output.text().lines().map(|line| serde_json::from_str(line).unwrap());
    let expected = [
        serde_json::json!({"item": "s", "verdict": "seen", "fingerprint": "s"}),
        serde_json::json!({
            "item": {"base64": "/w=="}, "verdict": "unreadable", "reason": "[255]"
        }),
    ];
    assert_eq!(rows.collect::<Vec<Value>>(), expected);
}
