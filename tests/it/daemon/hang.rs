//! A hanging disk: a sync of the log does not return.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::{Crawl, READY, SINK, stop, urls};
use crate::util::binary::{Daemon, Output, Run};
use crate::util::wait::{SOON, wait_until};

/// Option of strace that delays each sync by ten minutes, longer than any test. The number is in
/// microseconds.
const DELAY: &str = "inject=fdatasync:delay_enter=600000000";

/// Tracer that makes a daemon's disk hang. The disk answers again when the tracer is dropped.
struct Tracer(Pid);

impl Tracer {
    fn of(daemon: &Daemon) -> Self {
        let mut tracer = None;
        wait_until(SOON, "tracer", || {
            let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
            let id = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap();
            tracer = Pid::from_raw(id.trim().parse().unwrap());
            tracer.is_some()
        });
        Self(tracer.expect("it was waited for"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The tracer may have ended with its daemon.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Runs the daemon with a disk that hangs at the first sync of the log. In a new folder, this is
/// the sync of the first logged batches. In a folder with a log, it is a sync of the recovery.
fn start_with_hanging_log(crawl: &Crawl) -> (Daemon, Tracer) {
    let log = crawl.storage_dir().join("log-00000000000000000001");
    let log = log.to_str().unwrap();
    // `-D` detaches the tracer, so that the daemon, and not strace, is the child process.
    let tracer = ["-D", "-f", "-qq", "-o", "/dev/null", "-P", log, "-e", "trace=fdatasync"];
    let program = ["-e", DELAY, env!("CARGO_BIN_EXE_urlseen"), "run"];
    let run = Run::of("strace", [&tracer[..], &program].concat());
    let daemon = crawl.configured(run, &crawl.server.url(), &["--json"]).start();
    let tracer = Tracer::of(&daemon);
    (daemon, tracer)
}

/// Copies the files of a folder, as on a replicated disk.
fn copy(from: &Path, to: &str) -> PathBuf {
    let to = from.with_file_name(to);
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    to
}

/// Checks that a standby takes over from a daemon whose disk hangs. Such a daemon can log nothing,
/// so it must not renew its lease.
#[track_caller]
fn check_takeover(crawl: &Crawl, (mut first, tracer): (Daemon, Tracer)) -> Output {
    first.wait_for_line("left a sync of the log unanswered for 5 s", SOON);
    let dir = format!("storage.dir={}", copy(&crawl.storage_dir(), "copy").display());
    let mut second = crawl.run(&["--standby", "--json", "--set", &dir]).start();
    second.wait_for_line("standing by: waiting for the lease, which crawl", SOON);
    second.wait_for_line(READY, SOON);
    crawl.push(&urls(0, 30));
    crawl.wait_for_sink(30);
    crawl.wait_until_idle();
    assert!(first.is_running());
    drop(tracer);
    let output = first.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    let process = format!("already run by crawl \"demo\" (process {} ", second.id());
    assert!(output.stderr.contains(&process), "no {process:?} in {}", output.stderr);
    stop(second);
    let expected: Vec<_> = urls(0, 30).into_iter().map(String::into_bytes).collect();
    assert_eq!(crawl.list(SINK), expected);
    output
}

/// Checks the takeover with a new folder: the disk hangs at the first sync of logged batches.
#[track_caller]
fn check_takeover_with(fsync: &str) {
    let crawl = Crawl::new().set(&format!("storage.fsync={fsync}"));
    let (mut first, tracer) = start_with_hanging_log(&crawl);
    first.wait_for_line(READY, SOON);
    crawl.push(&urls(0, 20));
    let output = check_takeover(&crawl, (first, tracer));
    let words = "the lease is lost: the disk of the storage folder";
    assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
}

/// With `interval`, a thread does the sync, and the session does not wait for it.
#[test]
fn a_daemon_with_a_hanging_disk_loses_the_lease_to_a_standby() {
    check_takeover_with("interval");
}

/// With `always`, the session waits for the sync before each commit.
#[test]
fn a_daemon_that_waits_for_a_hanging_disk_commits_nothing_afterwards() {
    check_takeover_with("always");
}

/// The recovery waits for the sync, and the daemon has the lease meanwhile.
#[test]
fn a_disk_that_hangs_in_the_recovery_loses_the_lease() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 20));
    crawl.drain();
    let output = check_takeover(&crawl, start_with_hanging_log(&crawl));
    assert!(output.stderr.contains("the lease is lost"), "{}", output.stderr);
}
