//! The test harness: servers and programs start, can be watched, and end with their test.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::thread;
use std::time::Duration;

use redis::Commands;
use rustix::process::Signal;

use crate::util::binary::{Run, urlseen};
use crate::util::redis::{RedisServer, connect, free_port};
use crate::util::wait::{SOON, wait_until};

/// Time after which a test may conclude that an event does not happen.
const BRIEFLY: Duration = Duration::from_millis(50);

/// Runs `test`, which must panic, and returns the message of the panic.
fn panic_of<T>(test: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).map(drop).expect_err("a panic");
    panic.downcast_ref::<String>().expect("a panic with a message").clone()
}

#[test]
fn a_server_keeps_data_over_a_restart_only_if_configured() {
    for (arguments, kept) in [
        (&[][..], None),
        (&["--appendonly", "yes", "--appendfsync", "always"], Some("value".to_owned())),
    ] {
        let mut server = RedisServer::start_with(arguments);
        let () = server.connection().set("key", "value").unwrap();
        assert_eq!(server.cli(&["get", "key"]), "value");
        server.restart();
        assert_eq!(server.connection().get::<_, Option<String>>("key").unwrap(), kept);
    }
}

#[test]
fn servers_do_not_share_anything() {
    let (one, other) = (RedisServer::start(), RedisServer::start());
    assert_ne!(one.url(), other.url());
    one.cli(&["set", "key", "value"]);
    assert_eq!(other.cli(&["exists", "key"]), "0");
}

#[test]
fn a_killed_server_ends_open_connections() {
    let mut server = RedisServer::start();
    let mut connection = server.connection();
    server.kill();
    assert!(connection.get::<_, Option<String>>("key").unwrap_err().is_io_error());
    assert!(connect(&server.url()).is_err());
    server.restart();
    assert_eq!(server.cli(&["ping"]), "PONG");
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_folder() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let folder = server.folder().to_owned();
    assert!(folder.join("socket").exists());
    drop(server);
    assert!(connection.get::<_, Option<String>>("key").unwrap_err().is_io_error());
    assert!(!folder.exists());
}

#[test]
fn a_paused_server_answers_when_resumed() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    connection.set_read_timeout(Some(BRIEFLY)).unwrap();
    server.pause();
    assert!(connection.get::<_, Option<String>>("key").unwrap_err().is_timeout());
    server.resume();
    assert_eq!(server.connection().get::<_, Option<String>>("key").unwrap(), None);
}

#[test]
fn a_server_can_require_a_password_and_listen_on_a_port() {
    let port = free_port();
    let server = RedisServer::start_with(&["--requirepass", "secret", "--port", &port]);
    assert!(connect(&server.url()).and_then(|mut open| open.get::<_, ()>("key")).is_err());
    let named = server.url_as("default", "secret");
    for url in [named, format!("redis://:secret@127.0.0.1:{port}")] {
        assert_eq!(connect(&url).unwrap().get::<_, Option<String>>("key").unwrap(), None);
    }
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    let message = panic_of(|| RedisServer::start_with(&["--no-such-option", "1"]));
    assert!(message.contains("no-such-option") && message.contains("Bad directive"), "{message}");
}

#[test]
fn a_refused_command_fails_the_test() {
    let server = RedisServer::start();
    let message = panic_of(|| server.cli(&["no-such-command"]));
    assert!(message.contains("unknown command"), "{message}");
}

#[test]
fn all_servers_end_with_the_thread_that_started_them() {
    // No value is dropped, as if the whole process were killed.
    let mut daemon = thread::spawn(|| {
        let mut daemon = Run::of("/bin/sh", ["-c", "echo started >&2; exec sleep 600"]).start();
        daemon.wait_for_line("started", SOON);
        daemon
    })
    .join()
    .unwrap();
    assert_eq!(daemon.wait(SOON).signal(), Some(9));
}

#[test]
fn a_run_gets_input_arguments_and_environment_and_returns_both_outputs() {
    let script = r#"cat; echo "$0 $GIVEN" >&2; exit 3"#;
    let run = Run::of("/bin/sh", ["-c", script]).arg("argument").env("GIVEN", "value");
    let output = run.stdin("a\nb").output();
    assert_eq!(output.code(), Some(3));
    assert_eq!(output.text(), "a\nb");
    assert_eq!(output.stderr, "argument value\n");
}

#[test]
fn a_run_accepts_more_input_and_output_than_a_pipe_holds() {
    let input = "0123456789\n".repeat(100_000);
    assert_eq!(Run::of("cat", [""; 0]).stdin(input.as_str()).output().text(), input);
    // The harness accepts a program that does not read its input.
    assert_eq!(Run::of("true", [""; 0]).stdin(input).output().code(), Some(0));
}

#[test]
fn a_run_has_an_empty_folder_of_its_own_unless_given_one() {
    let output = Run::of("/bin/sh", ["-c", "pwd; ls -A"]).output();
    let (folder, entries) = output.text().split_once('\n').unwrap();
    assert!(folder.contains("urlseen-run-") && entries.is_empty(), "{output:?}");
    assert!(!fs::exists(folder).unwrap());
    let given = tempfile::tempdir().unwrap();
    let output = Run::of("pwd", [""; 0]).dir(given.path()).output();
    assert_eq!(output.text().trim_end(), given.path().to_str().unwrap());
}

#[test]
fn a_run_does_not_see_the_settings_of_the_test_process() {
    // A process cannot safely set its own variables, so the test runs itself again with the
    // variable.
    let inner = "harness::a_run_of_env_shows_no_settings";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", inner, "--nocapture"])
        .env("URLSEEN_CRAWL__NAME", "other")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
fn a_run_of_env_shows_no_settings() {
    let output = Run::of("env", [""; 0]).env("URLSEEN_ITS__OWN", "1").output();
    let settings = output.text().lines().filter(|line| line.starts_with("URLSEEN_"));
    assert_eq!(settings.collect::<Vec<_>>(), ["URLSEEN_ITS__OWN=1"]);
}

#[test]
fn the_built_program_runs() {
    assert_eq!(urlseen([""; 0]).output().status.signal(), None);
}

#[test]
fn a_daemon_is_watched_signalled_and_waited_for() {
    let script = "trap 'echo bye >&2; exit 7' TERM; echo one >&2; echo two words >&2; \
        while :; do sleep 0.01; done";
    let mut daemon = Run::of("/bin/sh", ["-c", script]).start();
    assert_eq!(daemon.wait_for_line("words", SOON), "two words");
    assert_eq!(daemon.wait_for_line("one", SOON), "one");
    assert!(daemon.is_running());
    let message = panic_of(|| daemon.wait_for_line("three", BRIEFLY));
    assert!(message.contains("said no \"three\"") && message.contains("two words"), "{message}");
    let message = panic_of(|| daemon.wait(BRIEFLY));
    assert!(message.contains("still runs"), "{message}");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(SOON).code(), Some(7));
    assert!(!daemon.is_running());
    let message = panic_of(|| daemon.wait_for_line("three", SOON));
    assert!(message.contains("ended before") && message.contains("bye"), "{message}");
}

#[test]
fn a_dropped_daemon_is_killed() {
    let mut daemon = Run::of("/bin/sh", ["-c", "echo $$ >&2; exec sleep 600"]).start();
    let process = format!("/proc/{}", daemon.wait_for_line("", SOON));
    assert!(fs::exists(&process).unwrap());
    drop(daemon);
    assert!(!fs::exists(&process).unwrap());
}

#[test]
fn waiting_ends_with_the_condition_or_names_it() {
    let mut looks = 0;
    wait_until(SOON, "third look", || {
        looks += 1;
        looks == 3
    });
    assert_eq!(looks, 3);
    let message = panic_of(|| wait_until(Duration::ZERO, "miracle", || false));
    assert!(message.contains("no miracle in 0ns"), "{message}");
}
