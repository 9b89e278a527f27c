//! Limit of this machine for a configuration: file descriptors.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::admin::Limits;
use crate::cli::prelude::*;

/// Maximum number of connections to Redis. They are for commands, for the wait on the source, and
/// for the check of the server or the release of the lease.
const REDIS: u64 = 4;

/// Maximum number of files and directories of the storage folder that are open at the same time.
/// They are the lock, the log, earlier logs until their sync, a snapshot, the file `imports`, and
/// files that a recovery reads.
const FILES: u64 = 16;

/// Reserve for short uses (name servers, certificates, `/proc`) and for the async runtimes.
const RESERVE: u64 = 32;

/// Returns the maximum number of open file descriptors for each use. `open` is the number of
/// descriptors that are open at the start, and `crawls` the number of crawls to run.
fn needs(config: &Config, crawls: usize, open: u64) -> [(u64, &'static str); 6] {
    let crawls = crawls as u64;
    let is_local = config.filter.place == FilterPlace::Local;
    let has_redis = config.source.kind != SourceKind::None || !is_local;
    let connections = Limits::default().connections as u64;
    // Each listener needs a descriptor for itself and for each connection. The Unix socket needs
    // one more, for its folder.
    let socket = if is_local { crawls * (connections + 2) } else { 0 };
    let address = if config.admin.listen.is_some() { connections + 1 } else { 0 };
    // The clients, the listener, and one client that is being refused.
    let serve = config.serve.listen.as_ref().map_or(0, |_| config.serve.max_clients as u64 + 2);
    [
        (serve, "for clients of [serve]"),
        (socket + address, "for the admin endpoint"),
        (if has_redis { crawls * REDIS } else { 0 }, "for Redis"),
        (if is_local { crawls * FILES } else { 0 }, "for log, snapshots and imports"),
        (RESERVE, "in reserve"),
        (open, "open at the start"),
    ]
}

fn total(needs: &[(u64, &str)]) -> u64 {
    needs.iter().map(|(count, _)| count).sum()
}

/// Returns the number of open file descriptors of this process, or 3 if the number is unknown.
fn open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(3, |all| all.count() as u64)
}

/// Returns a message if the hard limit is too low for the configuration. The message begins with
/// the configuration key that the user can change.
pub(super) fn lacking(config: &Config, crawls: usize) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).maximum?;
    let needs = needs(config, crawls, open());
    let missing = total(&needs).checked_sub(limit).filter(|&missing| missing > 0)?;
    let serves = config.serve.listen.is_some();
    let key = if serves { "serve.max_clients" } else { "admin.listen" };
    let clients = config.serve.max_clients as u64;
    let fewer = match clients.checked_sub(missing) {
        Some(clients @ 1..) if serves => format!(", or lower serve.max_clients to {clients}"),
        _ => String::new(),
    };
    let uses = needs.map(|(count, what)| format!("{count} {what}")).join(", ");
    Some(format!(
        "{key}: {} file descriptors are needed ({uses}), and the hard limit is {limit}; raise the \
         limit (LimitNOFILE= in a systemd unit, ulimit -Hn in a shell){fewer}",
        total(&needs)
    ))
}

/// Raises the limit of this process to the need of a configuration, if the limit is lower.
pub(super) fn raise(config: &Config, crawls: usize) -> io::Result<()> {
    let need = total(&needs(config, crawls, open()));
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < need) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(need), maximum })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[track_caller]
    fn total(settings: &[&str]) -> u64 {
        let set = settings.iter().map(|&setting| setting.to_owned()).collect();
        super::total(&needs(&Config::load(Sources { set, ..Sources::default() }).unwrap(), 1, 3))
    }

    #[test]
    fn each_use_counts_only_if_it_is_configured() {
        let least = total(&[]);
        assert_eq!(least, 34 + 4 + 16 + 32 + 3);
        assert_eq!(total(&["admin.listen=127.0.0.1:0"]), least + 33);
        let served = ["serve.listen=127.0.0.1:0", "serve.max_clients=5000"];
        assert_eq!(total(&served), least + 5002);
        assert_eq!(total(&[&served[..], &["source.kind=none"]].concat()), least + 5002 - 4);
        assert_eq!(total(&["filter.place=redis"]), 4 + 32 + 3);
    }
}
