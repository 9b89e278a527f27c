//! The file descriptors that the daemon needs, and its limit on them.

use std::fmt;
use std::io;

use crate::admin::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use urlseen_engine::config::{Config, FilterPlace, SourceKind};

/// Connections to Redis at once: one that works, one that waits, and one that proves or releases.
const REDIS: u64 = 4;

/// Files and directories of the storage folder at once: its lock, the log and those before it that
/// are not synced yet, the snapshot that is written, imports, and what is read back.
const FILES: u64 = 16;

/// For what is open for a moment (name servers, certificates, `/proc`), and the runtimes' own.
const RESERVE: u64 = 32;

/// File descriptors that the daemon may have open at once, by their use.
#[derive(Debug, Clone, Copy)]
struct Need {
    /// Clients of `[serve]`, the listener, and one that is being refused.
    serve: u64,
    /// Connections to the admin endpoint, its listeners, and the socket's folder.
    admin: u64,
    redis: u64,
    files: u64,
    reserve: u64,
    /// Open before the daemon opens any.
    open: u64,
}

impl Need {
    /// The need of a configuration, for a process that has so many open.
    fn of(config: &Config, open: u64) -> Self {
        let is_local = config.filter.place == FilterPlace::Local;
        let has_redis = config.source.kind != SourceKind::None || !is_local;
        let connections = Limits::default().connections as u64;
        let socket = if is_local { connections + 2 } else { 0 };
        let address = if config.admin.listen.is_some() { connections + 1 } else { 0 };
        Self {
            serve: config.serve.listen.as_ref().map_or(0, |_| config.serve.max_clients as u64 + 2),
            admin: socket + address,
            redis: if has_redis { REDIS } else { 0 },
            files: if is_local { FILES } else { 0 },
            reserve: RESERVE,
            open,
        }
    }

    fn total(&self) -> u64 {
        self.serve + self.admin + self.redis + self.files + self.reserve + self.open
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { serve, admin, redis, files, reserve, open } = self;
        write!(
            f,
            "{serve} for clients of [serve], {admin} for the admin endpoint, {redis} for Redis, \
             {files} for log, snapshots and imports, {reserve} in reserve, {open} open at the start"
        )
    }
}

/// Counts what this process has open; the three of every process if the system does not say.
fn open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(3, |all| all.count() as u64)
}

/// Returns the key and the fault of a configuration that the hard limit is too low for.
pub(super) fn lacking(config: &Config) -> Option<(&'static str, String)> {
    let limit = getrlimit(Resource::Nofile).maximum?;
    let need = Need::of(config, open());
    let missing = need.total().checked_sub(limit).filter(|&missing| missing > 0)?;
    let key = if need.serve > 0 { "serve.max_clients" } else { "admin.listen" };
    let clients = config.serve.max_clients as u64;
    let fewer = match clients.checked_sub(missing) {
        Some(clients @ 1..) if need.serve > 0 => {
            format!(", or lower serve.max_clients to {clients}")
        }
        _ => String::new(),
    };
    let fault = format!(
        "{} file descriptors are needed ({need}), and the hard limit is {limit}; raise it \
         (LimitNOFILE= in a systemd unit, ulimit -Hn in a shell){fewer}",
        need.total()
    );
    Some((key, fault))
}

/// Raises the limit of this process to what a configuration needs, if it is lower.
pub(super) fn raise(config: &Config) -> io::Result<()> {
    let (need, Rlimit { current, maximum }) =
        (Need::of(config, open()).total(), getrlimit(Resource::Nofile));
    if current.is_some_and(|current| current < need) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(need), maximum })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_engine::config::Sources;

    #[track_caller]
    fn total(settings: &[&str]) -> u64 {
        let set = settings.iter().map(|&setting| setting.to_owned()).collect();
        let env = [("", ""); 0];
        Need::of(&Config::load(Sources { file: None, env, set }).unwrap(), 3).total()
    }

    #[test]
    fn each_use_counts_where_it_is_configured() {
        let least = total(&[]);
        assert_eq!(least, 34 + 4 + 16 + 32 + 3);
        assert_eq!(total(&["admin.listen=127.0.0.1:0"]), least + 33);
        let served = ["serve.listen=127.0.0.1:0", "serve.max_clients=5000"];
        assert_eq!(total(&served), least + 5002);
        assert_eq!(total(&[&served[..], &["source.kind=none"]].concat()), least + 5002 - 4);
        assert_eq!(total(&["filter.place=redis"]), 4 + 32 + 3);
    }
}
