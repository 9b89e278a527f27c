//! Output for a terminal: names and items from outside can neither move the cursor nor hide text.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use redis::Commands;
use rustix::process::Signal;
use tempfile::TempDir;
use urlseen_cli::admin::{Checked, Limits};

use crate::admin::Endpoint;
use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::SOON;

/// Text that sets the title, rings the bell, returns to the start of the line, sets a colour, ends
/// the line and reverses text.
const HOSTILE: &str = "h\u{1b}]0;t\u{7}\rx\u{9b}31m\u{85}\u{202e}y\u{2066}z";

/// Control characters in [`HOSTILE`] that a terminal would obey, or the start of each longer
/// control sequence.
const OBEYED: [&str; 7] = ["\u{1b}]", "\u{7}", "\rx", "\u{9b}", "\u{85}", "\u{202e}", "\u{2066}"];

#[track_caller]
fn is_tame(what: &str, text: &str) {
    for obeyed in OBEYED {
        assert!(!text.contains(obeyed), "{what}: {obeyed:?} in {text:?}");
    }
    assert!(text.contains("\\u{202e}") || text.contains("\\u202e"), "{what} shows it: {text:?}");
}

/// Prepares a run with a terminal as its output. The variable `H` has the hostile text.
fn on_terminal(command: &str) -> Run {
    let program = env!("CARGO_BIN_EXE_urlseen");
    let command = format!("exec {program} {command}");
    let script = ["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"];
    Run::of("script", script).env("H", HOSTILE)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_check_escapes_items_and_reasons() {
    let endpoint = Endpoint::with(Limits::default(), |items| {
        let reason = || HOSTILE.to_owned();
        let judge = |item: &Vec<u8>| match item.first() {
            Some(b's') => Checked::Seen { fingerprint: reason() },
            _ => Checked::Unreadable { reason: reason() },
        };
        Ok(items.iter().map(judge).collect())
    });
    let shown = on_terminal("check --storage \"$DIR\" \"s$H\" \"u$H\" \"$BYTES\"")
        .env("DIR", endpoint.folder.path())
        .env("BYTES", OsStr::from_bytes(b"\xff\x9b31m"))
        .output();
    is_tame("on a terminal", &text(&shown));
    assert!(text(&shown).contains("\\xff\\x9b31m"), "{shown:?}");
    let piped = urlseen(["check", "--storage"]).arg(endpoint.folder.path());
    let piped = piped.arg(format!("u{HOSTILE}")).output();
    is_tame("standard error", &piped.stderr);
    assert_eq!(piped.text(), format!("unreadable\t-\tu{HOSTILE}\n"), "rows for programs are data");
}

#[test]
fn forget_escapes_items_and_its_list() {
    let set = format!("forget.key={HOSTILE}");
    let output = urlseen(["forget", HOSTILE, "--set", &set]).output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    is_tame("standard error", &output.stderr);
    is_tame("standard output", output.text());
    let odd = OsString::from_vec(b"\xff\x9b31m".to_vec());
    let output = urlseen(["forget"]).arg(odd).output();
    assert!(output.stderr.contains("\\xff\\x9b31m"), "{output:?}");
}

#[test]
fn names_of_files_are_escaped_for_a_terminal() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(HOSTILE), "no digest\n{\n").unwrap();
    for command in [
        &["import", "--storage", "storage", HOSTILE][..],
        &["import", "--storage", "storage", &format!("missing{HOSTILE}")],
        &["filter", "--item", "json", HOSTILE],
        &["filter", &format!("missing{HOSTILE}")],
        &["filter", "--storage", HOSTILE],
        &["fingerprint", HOSTILE],
        &["fingerprint", &format!("missing{HOSTILE}")],
        &["run", "--config", &format!("missing{HOSTILE}")],
        &["status", "--storage", &format!("missing{HOSTILE}")],
    ] {
        let output = urlseen(command).dir(folder.path()).output();
        is_tame(command[0], &output.stderr);
    }
    let output = urlseen(["replay", HOSTILE]).dir(folder.path()).output();
    is_tame("replay", output.text());
    let bad = on_terminal("import --storage state \"$H\"").dir(folder.path()).output();
    is_tame("import on a terminal", &text(&bad));
}

#[test]
fn wrong_arguments_and_settings_are_escaped() {
    for command in [
        &["check", &format!("--{HOSTILE}")][..],
        &["check", "a", "--set", &format!("log.level={HOSTILE}")],
        &["storage", "reset", "--set", &format!("storage.dir={HOSTILE}")],
    ] {
        let output = urlseen(command).output();
        assert_eq!(output.code(), Some(2), "{output:?}");
        is_tame(command[0], &output.stderr);
    }
}

#[test]
fn a_storage_folder_and_an_explanation_are_escaped() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join(HOSTILE);
    let made = urlseen(["filter", "--storage"]).arg(&dir).stdin("http://a/\n").output();
    assert_eq!(made.code(), Some(0), "{made:?}");
    for command in ["storage show", "status"] {
        let output = urlseen(command.split(' ')).arg("--storage").arg(&dir).output();
        is_tame(command, output.text());
    }
    is_tame("explain", urlseen(["explain", &format!("http://a/{HOSTILE}")]).output().text());
    let json = serde_json::json!({"url": HOSTILE, "fingerprint": HOSTILE});
    fs::write(folder.path().join("lines"), format!("{json}\n")).unwrap();
    let shown = on_terminal("fingerprint lines").dir(folder.path()).output();
    is_tame("fingerprint", &text(&shown));
}

#[test]
fn rejects_are_escaped() {
    let server = RedisServer::start();
    let set = format!("redis.url={}", server.url());
    let reject = format!("not ours: {HOSTILE}");
    server.connection().rpush::<_, _, ()>("demo:rejected", reject).unwrap();
    let list = urlseen(["rejects", "list", "--set", &set]).output();
    is_tame("rejects list", list.text());
    let requeue = urlseen(["rejects", "requeue", "--set", &set]).output();
    is_tame("rejects requeue", &requeue.stderr);
}

#[test]
fn log_lines_contain_no_terminal_control_characters() {
    for format in ["text", "json"] {
        let url = "unix:///nowhere/%1B]0;t%07%0Dx%C2%9B31m%C2%85%E2%80%AEy%E2%81%A6z";
        let daemon = urlseen(["run", "--set"]).arg(format!("redis.url={url}"));
        let mut daemon = daemon.arg("--set").arg(format!("log.format={format}")).start();
        let line = daemon.wait_for_line("Trying again", SOON);
        is_tame(format, &line);
        if format == "json" {
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(event["message"].as_str().unwrap().contains('\u{202e}'), "{line}");
        }
        daemon.signal(Signal::TERM);
        daemon.wait(SOON);
    }
}
