//! `urlseen status` and `urlseen check` with a test endpoint.

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;
use urlseen_cli::report::{Phase, Status};

use super::{Endpoint, status};
use crate::transcripts::assert_recorded;
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
    let ages = Regex::new(r"\d+years( \d+[a-z]+)*").unwrap();
    assert_recorded("admin/status.txt", ages.replace_all(output.text(), "[AGE]").into_owned());
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
