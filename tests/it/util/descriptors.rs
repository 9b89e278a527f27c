//! Limits on the file descriptors of this process and of daemons.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use super::binary::Daemon;

/// Raises the limit of this process to its hard limit, because tests open many connections.
pub(crate) fn raise_own() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Lowers the limit of a daemon, so that it can open only `free` more descriptors.
pub(crate) fn leave(daemon: &Daemon, free: usize) {
    let open = open(daemon);
    let unused = (0..).filter(|number| !open.contains(number));
    // The limit is the first number that is not permitted.
    limit(daemon, unused.take(free + 1).last().unwrap());
}

/// Lowers the limit of a daemon, so that it can open no descriptor, not even after it has closed
/// one.
pub(crate) fn forbid(daemon: &Daemon) {
    limit(daemon, 0);
}

/// Raises the limit of a daemon to its hard limit.
pub(crate) fn restore(daemon: &Daemon) {
    limit(daemon, u64::MAX);
}

/// Returns the numbers of all open descriptors of a daemon.
fn open(daemon: &Daemon) -> BTreeSet<u64> {
    let names = fs::read_dir(format!("/proc/{}/fd", daemon.id())).unwrap();
    names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

fn limit(daemon: &Daemon, most: u64) {
    let pid = Pid::from_raw(daemon.id().cast_signed());
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let maximum: u64 = line.split_whitespace().nth(4).unwrap().parse().unwrap();
    let new = Rlimit { current: Some(most.min(maximum)), maximum: Some(maximum) };
    prlimit(pid, Resource::Nofile, new).unwrap();
}
