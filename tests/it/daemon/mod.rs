//! The daemon, `urlseen run`, with real Redis servers.

mod backup;
mod bounds;
mod descriptors;
mod ends;
mod folder;
mod held;
mod idle;
pub(crate) mod items;
mod large_items;
mod lease;
mod limits;
mod looking;
mod moving;
mod outages;
mod peer_kinds;
mod recovery;
mod recrawl;
mod refusals;
mod replicas;
mod same;
mod saves;
mod service_manager;
mod shared;
mod signals;
mod tampering;
mod tap;
mod words;
mod zset;

use std::collections::BTreeMap;
use std::path::PathBuf;

use redis::{Commands, Connection, ToRedisArgs};
use rustix::process::Signal;
use serde_json::Value;
use urlseen_cli::admin::AdminClient;

use crate::util::binary::{Daemon, Output, Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

const SOURCE: &str = "demo:discovered";
const SINK: &str = "demo:unseen";
const REJECTED: &str = "demo:rejected";
const PROCESSING: &str = "urlseen:{demo:discovered}:processing";
const STATE: &str = "urlseen:{demo:discovered}:state";
const LEASE: &str = "urlseen:{demo:discovered}:lease";

/// Part of the log line that the daemon writes when it starts to work.
const READY: &str = "this daemon has taken the lease";

type Bytes = Vec<u8>;

/// Crawl with the default names, on its own server.
pub(crate) struct Crawl {
    pub(crate) server: RedisServer,
    settings: Vec<String>,
    /// ACL user of the daemon, if it is not the default user.
    user: Option<&'static str>,
}

/// Password of every user in these tests.
const PASSWORD: &str = "a-secret-word";

impl Crawl {
    /// Makes a crawl on a new server, with a small filter that makes practically no errors.
    pub(crate) fn new() -> Self {
        Self::on(RedisServer::start())
    }

    pub(crate) fn on(server: RedisServer) -> Self {
        let settings = ["filter.capacity=100_000", "filter.error_rate=1e-12"];
        Self { server, settings: settings.map(str::to_owned).to_vec(), user: None }
    }

    /// Gives the daemon its own user, who has all permissions at first.
    fn with_user(mut self, user: &'static str) -> Self {
        let password = format!(">{PASSWORD}");
        self.server.cli(&["acl", "setuser", user, "on", &password, "~*", "&*", "+@all"]);
        self.user = Some(user);
        self
    }

    /// Sets `KEY=VALUE` for all later runs.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// Prepares `urlseen run` with these arguments and all settings.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let url = self.server.url();
        match self.user {
            Some(user) => self
                .run_at(&format!("{url}?user={user}"), arguments)
                .env("URLSEEN_REDIS_PASSWORD", PASSWORD),
            None => self.run_at(&url, arguments),
        }
    }

    /// Prepares `urlseen run` with another URL of the server.
    fn run_at(&self, url: &str, arguments: &[&str]) -> Run {
        self.command_at("run", url, arguments)
    }

    /// Prepares another command with the same configuration.
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Run {
        self.command_at(command, &self.server.url(), arguments)
    }

    fn command_at(&self, command: &str, url: &str, arguments: &[&str]) -> Run {
        self.configured(urlseen(command.split(' ')), url, arguments)
    }

    /// Adds all settings of the crawl to a command, and then these arguments.
    fn configured(&self, run: Run, url: &str, arguments: &[&str]) -> Run {
        let run = run.arg("--set").arg(format!("redis.url={url}"));
        let dir = self.storage_dir();
        let run = run.arg("--set").arg(format!("storage.dir={}", dir.display()));
        let run = self.settings.iter().fold(run, |run, setting| run.arg("--set").arg(setting));
        arguments.iter().fold(run, Run::arg)
    }

    /// Runs the daemon until the source is empty, and returns its summary.
    #[track_caller]
    pub(crate) fn drain(&self) -> Summary {
        Summary::of(self.run(&["--drain", "--json"]).output())
    }

    /// Starts the daemon, and waits until it works.
    #[track_caller]
    pub(crate) fn start(&self) -> Daemon {
        let mut daemon = self.run(&["--json"]).start();
        daemon.wait_for_line(READY, SOON);
        daemon
    }

    /// Asks the running daemon for its status. Returns `Null` if no daemon answers.
    pub(crate) fn status(&self) -> Value {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ask = async { AdminClient::new(&self.storage_dir())?.status().await };
        runtime.block_on(ask).unwrap_or_default()
    }

    /// Returns the storage folder of all runs.
    pub(crate) fn storage_dir(&self) -> PathBuf {
        self.server.folder().join("storage")
    }

    pub(crate) fn connection(&self) -> Connection {
        self.server.connection()
    }

    /// Pushes items to the right end of the source, in order.
    pub(crate) fn push<T: ToRedisArgs + Send + Sync>(&self, items: &[T]) {
        let mut connection = self.connection();
        for items in items.chunks(1000) {
            let () = connection.rpush(SOURCE, items).unwrap();
        }
    }

    /// Returns a list from left to right, or a sorted set from the lowest score.
    fn list(&self, key: &str) -> Vec<Bytes> {
        let mut connection = self.connection();
        if is_sorted(&mut connection, key) {
            connection.zrange(key, 0, -1).unwrap()
        } else {
            connection.lrange(key, 0, -1).unwrap()
        }
    }

    fn len(&self, key: &str) -> usize {
        len(&mut self.connection(), key)
    }

    /// Returns the rejects as JSON, oldest first.
    fn rejects(&self) -> Vec<Value> {
        self.list(REJECTED).iter().map(|json| serde_json::from_slice(json).unwrap()).collect()
    }

    /// Waits until the sink holds this number of items.
    #[track_caller]
    pub(crate) fn wait_for_sink(&self, items: usize) {
        let mut connection = self.connection();
        wait_until(SOON, &format!("{items} items in the sink"), || {
            len(&mut connection, SINK) >= items
        });
    }

    /// Waits until the source is empty, no item is claimed, and the daemon waits for more items.
    #[track_caller]
    fn wait_until_idle(&self) {
        let mut connection = self.connection();
        wait_until(SOON, "idle daemon", || {
            let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut connection).unwrap();
            // A client that waits for replicas is blocked as well.
            let waits =
                |client: &&str| client.contains(" flags=b") && !client.contains(" cmd=wait ");
            connection.exists::<_, usize>(&[SOURCE, PROCESSING]).unwrap() == 0
                && clients.lines().filter(waits).count() == 1
        });
    }

    /// Returns every key with its value from `DUMP`, except the lease, which changes by itself.
    pub(crate) fn dump(&self) -> BTreeMap<String, Bytes> {
        let mut connection = self.connection();
        let keys: Vec<String> = connection.keys("*").unwrap();
        let dump = |key: String| {
            let value = redis::cmd("DUMP").arg(&key).query(&mut connection).unwrap();
            (key, value)
        };
        keys.into_iter().filter(|key| key != LEASE).map(dump).collect()
    }
}

fn is_sorted(connection: &mut Connection, key: &str) -> bool {
    let kind: String = redis::cmd("TYPE").arg(key).query(connection).unwrap();
    kind == "zset"
}

/// Returns the length of a list or a sorted set.
fn len(connection: &mut Connection, key: &str) -> usize {
    // `LLEN` fails if the key holds a sorted set.
    connection.llen(key).or_else(|_| connection.zcard(key)).unwrap()
}

/// Summary that a run with `--json` printed at its end.
#[derive(Debug)]
pub(crate) struct Summary {
    code: Option<i32>,
    values: Value,
    stderr: String,
}

impl Summary {
    #[track_caller]
    fn of(output: Output) -> Self {
        let values = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no summary ({error}): {output:?}"));
        Self { code: output.code(), values, stderr: output.stderr }
    }

    /// Returns a number of the summary.
    #[track_caller]
    pub(crate) fn count(&self, name: &str) -> usize {
        let value = self.values[name].as_u64();
        let value = value.unwrap_or_else(|| panic!("no count {name:?}: {}", self.values));
        usize::try_from(value).unwrap()
    }

    /// Returns the number of items, then of unseen, seen, unfiltered and rejected items.
    #[track_caller]
    pub(crate) fn counts(&self) -> (usize, [usize; 4]) {
        let fates = ["unseen", "seen", "unfiltered", "rejected"].map(|name| self.count(name));
        (self.count("items"), fates)
    }

    fn ending(&self) -> &str {
        self.values["ending"].as_str().unwrap_or_default()
    }
}

/// Ends the daemon with SIGTERM, and returns its summary.
#[track_caller]
pub(crate) fn stop(daemon: Daemon) -> Summary {
    daemon.signal(Signal::TERM);
    let summary = Summary::of(daemon.output(SOON));
    assert_eq!(summary.code, Some(0), "{summary:?}");
    summary
}

/// Stops the process (SIGSTOP), and waits until it has stopped.
fn stop_process(daemon: &Daemon) {
    daemon.signal(Signal::STOP);
    wait_until(SOON, "stopped process", || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", daemon.id())).unwrap();
        status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    });
}

/// Makes `count` different URLs, numbered from `from`.
fn urls(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|number| format!("http://example.com/{number}")).collect()
}
