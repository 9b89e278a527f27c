//! Clients cannot take the file descriptors that the log and snapshots need.

use std::fs;
use std::os::unix::fs::MetadataExt;

use redis::{Commands, Connection};
use rustix::process::Signal;

use super::{Running, Served, urls};
use crate::util::binary::Run;
use crate::util::descriptors::{forbid, leave, raise_own, restore};
use crate::util::wait::{SOON, wait_until};

/// Number of URLs that are added at once. They are too few for a snapshot.
const SOME: usize = 1000;

/// Prepares the daemon with a soft and a hard limit on file descriptors.
fn limited(served: &Served, limits: &str) -> Run {
    let program = env!("CARGO_BIN_EXE_urlseen");
    let state = format!("storage.dir={}", served.storage_dir().display());
    let run = Run::of("prlimit", [&format!("--nofile={limits}"), program, "run", "--set", &state]);
    served.settings.iter().fold(run, |run, setting| run.arg("--set").arg(setting))
}

/// Returns the inode of the latest snapshot, and the time of its last change. Each new snapshot has
/// another inode than the one before, and perhaps that of an earlier one.
fn snapshot(served: &Served) -> Option<(u64, i64, i64)> {
    let file = served.storage_dir().join("snapshot-00000000000000000000");
    fs::metadata(file).ok().map(|file| (file.ino(), file.ctime(), file.ctime_nsec()))
}

/// Adds further URLs, all of them new, up to 50,000 in all. The filter has room for these.
fn add(client: &mut Connection, added: &mut usize) {
    if *added == 50_000 {
        return;
    }
    let all = urls(*added..*added + SOME);
    assert_eq!(client.sadd::<_, _, usize>("demo", all).unwrap(), SOME);
    *added += SOME;
}

/// Kills the daemon, and checks with another daemon that all URLs are seen.
#[track_caller]
fn assert_kept(served: &Served, mut running: Running, added: usize) {
    running.daemon.signal(Signal::KILL);
    running.daemon.wait(SOON);
    let running = served.start();
    let mut client = running.connection();
    for first in (0..added).step_by(SOME) {
        let seen: Vec<bool> = client.smismember("demo", urls(first..first + SOME)).unwrap();
        assert_eq!(seen.iter().filter(|&&seen| seen).count(), SOME, "from {first} on");
    }
}

#[test]
fn a_thousand_silent_clients_leave_room_for_a_snapshot() {
    raise_own();
    let served = Served::new("demo").set("storage.snapshot_bytes=4096").set("storage.fsync=always");
    let running = Running::of(limited(&served, "1024:4096").start());
    let mut client = running.connection();
    let mut silent: Vec<_> = (0..1100).map(|_| running.socket()).collect();
    let (first, mut added) = (snapshot(&served), 0);
    assert!(first.is_some());
    wait_until(SOON, "snapshot", || {
        add(&mut client, &mut added);
        snapshot(&served) != first
    });
    let mut last = silent.pop().unwrap();
    assert_eq!(last.rest(), "-ERR max number of clients reached\r\n");
    assert_kept(&served, running, added);
}

#[test]
fn more_clients_than_the_hard_limit_allows_are_refused_before_anything_starts() {
    let served = Served::new("demo").set("serve.max_clients=2000").set("filter.threads=99");
    let output = limited(&served, "256:1024").output();
    assert_eq!(output.code(), Some(2), "{}", output.stderr);
    let said: Vec<&str> = output.stderr.lines().collect();
    let [threads, clients, count] = said[..] else { panic!("{}", output.stderr) };
    assert!(threads.starts_with("--set filter.threads: "), "{threads}");
    assert!(clients.starts_with("--set serve.max_clients: "), "{clients}");
    for words in [
        " file descriptors",
        "2002 for clients of [serve]",
        "the hard limit is 1024",
        "LimitNOFILE=",
        "ulimit -Hn",
    ] {
        assert!(clients.contains(words), "no {words:?} in {clients}");
    }
    assert_eq!(count, "2 problems in the configuration, nothing was started");
    assert!(!served.storage_dir().exists());
    // The daemon starts with the number of clients that the message permits.
    let room = clients.rsplit(' ').find_map(|word| word.parse::<u64>().ok()).unwrap();
    let start = |clients: u64| {
        let served = Served::new("demo").set(&format!("serve.max_clients={clients}"));
        limited(&served, "256:1024").start()
    };
    let running = Running::of(start(room));
    assert!(!running.connection().sismember::<_, _, bool>("demo", "a").unwrap());
    assert_eq!(start(room + 1).output(SOON).code(), Some(2));
}

#[test]
fn without_descriptors_a_snapshot_fails_and_nothing_is_lost() {
    for free in 0..4 {
        let served =
            Served::new("demo").set("storage.snapshot_bytes=4096").set("storage.fsync=always");
        let running = served.start();
        let mut client = running.connection();
        let mut added = 0;
        add(&mut client, &mut added);
        let first = snapshot(&served);
        leave(&running.daemon, free);
        wait_until(SOON, "try", || {
            add(&mut client, &mut added);
            running.daemon.stderr().contains("LimitNOFILE=") || snapshot(&served) != first
        });
        restore(&running.daemon);
        wait_until(SOON, "snapshot", || {
            add(&mut client, &mut added);
            snapshot(&served) != first
        });
        add(&mut client, &mut added);
        assert_kept(&served, running, added);
    }
}

#[test]
fn without_descriptors_a_new_client_waits_and_the_others_are_answered() {
    let served = Served::new("demo");
    let mut running = served.start();
    let mut client = running.connection();
    let mut added = 0;
    add(&mut client, &mut added);
    leave(&running.daemon, 0);
    let mut waiting = running.socket();
    waiting.send("PING\r\n");
    let said = running.daemon.wait_for_line("a client cannot connect to serve.listen", SOON);
    assert!(said.contains("LimitNOFILE="), "{said}");
    add(&mut client, &mut added);
    restore(&running.daemon);
    assert_eq!(waiting.receive("+PONG\r\n"), "+PONG\r\n");
    assert_kept(&served, running, added);
}

#[test]
fn without_descriptors_a_filter_is_emptied_later() {
    let served = Served::new("demo").set("serve.allow_delete=true");
    let mut running = served.start();
    let mut client = running.connection();
    let mut added = 0;
    add(&mut client, &mut added);
    forbid(&running.daemon);
    let deleted = std::thread::spawn(move || client.del::<_, usize>("demo").unwrap());
    let said = running.daemon.wait_for_line("the filter cannot be emptied", SOON);
    assert!(said.contains("LimitNOFILE="), "{said}");
    restore(&running.daemon);
    assert_eq!(deleted.join().unwrap(), 1);
    running.daemon.signal(Signal::KILL);
    running.daemon.wait(SOON);
    assert_eq!(served.start().connection().scard::<_, usize>("demo").unwrap(), 0);
}
