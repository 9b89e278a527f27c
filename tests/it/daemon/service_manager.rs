//! Messages to the service manager, which listens on a real socket (`NOTIFY_SOCKET`).

use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;
use tempfile::TempDir;
use urlseen_fingerprint::PartitionCount;
use urlseen_redis::hash_tag::{partition_key, partition_tag};

use super::{Crawl, SINK, SOURCE, stop, urls};
use crate::util::binary::Run;
use crate::util::wait::{SOON, wait_until};

/// Time after which the service manager would kill a silent daemon, in microseconds.
const WATCHDOG: &str = "100000";

/// Socket of a service manager, with the lines that it has received.
struct ServiceManager {
    socket: UnixDatagram,
    folder: TempDir,
    lines: Vec<String>,
}

impl ServiceManager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, folder, lines: Vec::new() }
    }

    /// Tells a program about this service manager.
    fn supervise(&self, run: Run) -> Run {
        run.env("NOTIFY_SOCKET", self.folder.path().join("notify")).env("WATCHDOG_USEC", WATCHDOG)
    }

    /// Receives the waiting messages, and returns all lines so far.
    fn lines(&mut self) -> &[String] {
        let mut message = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut message) {
            let text = std::str::from_utf8(&message[..length]).unwrap();
            self.lines.extend(text.lines().map(str::to_owned));
        }
        &self.lines
    }

    /// Sends messages to the socket until it is full, and receives none.
    fn fill(&self) {
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        let path = self.folder.path().join("notify");
        while other.send_to(b"", &path).is_ok() {}
    }

    fn count(&mut self, line: &str) -> usize {
        self.lines().iter().filter(|it| *it == line).count()
    }

    /// Waits for a line that begins with `start`.
    #[track_caller]
    fn wait_for(&mut self, start: &str) {
        wait_until(SOON, start, || self.lines().iter().any(|line| line.starts_with(start)));
    }
}

#[test]
fn a_daemon_tells_its_start_its_phase_its_life_and_its_stop() {
    let (crawl, mut manager) = (Crawl::new(), ServiceManager::new());
    let daemon = manager.supervise(crawl.run(&["--json"])).start();
    manager.wait_for("STATUS=working");
    wait_until(SOON, "signs of life", || manager.count("WATCHDOG=1") > 3);
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    stop(daemon);
    manager.wait_for("STOPPING=1");
    let at = |line: &str| manager.lines.iter().position(|it| it == line);
    assert!(at("READY=1") < at("STOPPING=1"), "{:?}", manager.lines);
    for line in ["READY=1", "STOPPING=1", "STATUS=working"] {
        assert_eq!(manager.count(line), 1, "{line}: {:?}", manager.lines);
    }
}

/// Fails if the daemon waits for a service manager that reads no messages.
#[test]
fn a_daemon_works_on_while_the_service_manager_hangs() {
    let (crawl, mut manager) = (Crawl::new(), ServiceManager::new());
    let daemon = manager.supervise(crawl.run(&["--json"])).start();
    manager.wait_for("STATUS=working");
    manager.fill();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    stop(daemon);
}

/// A service manager kills a daemon that is not ready after some time. Redis may be away for
/// longer.
#[test]
fn a_daemon_that_waits_for_redis_at_its_start_is_ready() {
    for setting in ["filter.place=local", "filter.place=redis", "partitions.count=2"] {
        let (mut crawl, mut manager) = (Crawl::new().set(setting), ServiceManager::new());
        crawl.server.kill();
        let daemon = manager.supervise(crawl.run(&["--json"])).start();
        manager.wait_for("READY=1");
        let is_partition = setting == "partitions.count=2";
        let partition = if is_partition { "partition 0: " } else { "" };
        manager.wait_for(&format!("STATUS={partition}waiting for Redis: cannot reach Redis"));
        crawl.server.restart();
        manager.wait_for("STATUS=working");
        assert_eq!(manager.count("READY=1"), 1, "{setting}");
        stop(daemon);
    }
}

/// A router has no partition of its own, and tells its own phase.
#[test]
fn a_router_that_waits_for_redis_at_its_start_is_ready() {
    let (mut crawl, mut manager) = (Crawl::new().set("partitions.count=2"), ServiceManager::new());
    crawl.server.kill();
    let router = manager.supervise(crawl.command("route", &["--json"])).start();
    manager.wait_for("READY=1");
    manager.wait_for("STATUS=waiting for Redis: cannot reach Redis");
    crawl.server.restart();
    manager.wait_for("STATUS=working");
    wait_until(SOON, "signs of life", || manager.count("WATCHDOG=1") > 3);
    stop(router);
    manager.wait_for("STOPPING=1");
    assert_eq!(manager.count("READY=1"), 1);
}

#[test]
fn a_standby_is_ready_while_it_waits_for_the_folder() {
    let (crawl, mut manager) = (Crawl::new(), ServiceManager::new());
    let first = crawl.start();
    let standby = manager.supervise(crawl.run(&["--json", "--standby"])).start();
    manager.wait_for("READY=1");
    manager.wait_for("STATUS=waiting for the storage folder, which process");
    stop(first);
    manager.wait_for("STATUS=working");
    stop(standby);
}

#[test]
fn a_daemon_whose_folder_cannot_be_opened_is_never_ready() {
    let (crawl, mut manager) = (Crawl::new(), ServiceManager::new());
    std::fs::write(crawl.storage_dir(), "a file").unwrap();
    let ended = manager.supervise(crawl.run(&["--json"])).output();
    assert_eq!(ended.code(), Some(3), "{ended:?}");
    assert_eq!(manager.count("READY=1"), 0);
}

#[test]
fn a_daemon_with_a_failed_partition_gives_no_further_sign_of_life() {
    let (crawl, mut manager) = (Crawl::new().set("partitions.count=2"), ServiceManager::new());
    let count = PartitionCount::new(2).unwrap();
    let last = count.partitions().nth(1).unwrap();
    let sink = partition_key(SINK, &partition_tag(last));
    let daemon = manager.supervise(crawl.run(&["--json"])).start();
    manager.wait_for("STATUS=working");
    crawl.server.cli(&["set", &sink, "no list"]);
    crawl.server.cli(&["rpush", &partition_key(SOURCE, &partition_tag(last)), &"f".repeat(40)]);
    manager.wait_for("STATUS=partition 1: failed: ");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.output(SOON).code(), Some(3));
    let failed = |line: &String| line.starts_with("STATUS=partition 1: failed: ");
    let mut after = manager.lines().iter().skip_while(|line| !failed(line));
    assert!(after.all(|line| line != "WATCHDOG=1"), "{:?}", manager.lines);
}
