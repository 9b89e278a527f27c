//! Commands that run the scripts of a crawl, and functions that read the replies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, cmd};
use urlseen_filter::RedisFilterKeys;

use super::{HeldCalls, HeldKeys, Keys, Script, Sink, Source, Token, commit};
use crate::preflight::{KeyOwner, Needs, ServerVersion};

/// Maximum number of items that one claim moves in a Redis Cluster. While a slot is being moved, a
/// long list blocks the nodes, so the list of claimed items stays short there.
const CLAIM_MAX: usize = 20_000;

/// Names and texts of the scripts that are called by hash.
const SCRIPTS: [(&str, &str); 6] = [
    ("begin", include_str!("begin.lua")),
    ("claim", include_str!("claim.lua")),
    ("give_back", include_str!("give_back.lua")),
    ("own", include_str!("own.lua")),
    ("renew", include_str!("renew.lua")),
    ("trim", include_str!("trim.lua")),
];

const COMMIT: &str = include_str!("commit.lua");

/// Functions that the commit calls, for a filter in the daemon.
const NO_KIND: &str = "local filter_refusal, judge";

/// Maximum time of one `WAIT`. Redis executes no later command of the connection in this time. So
/// this time must be much shorter than the time between two renewals of the lease.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Builder of the commands to Redis for one crawl, and reader of their replies.
#[derive(Debug)]
pub struct Protocol {
    /// Names of the crawl's keys in Redis.
    pub keys: Keys,
    pub(super) source: Source,
    pub(super) sink: Sink,
    /// Maximum number of items that one claim moves; 0 for all items.
    pub(super) claim_max: usize,
    /// Scripts that are called by hash, and the commit, by their names.
    pub scripts: BTreeMap<&'static str, Script>,
    /// True if a script can check the permissions of its user. Then a small batch needs neither a
    /// plain push nor the probes that precede such a push.
    pub(super) has_acl_check: bool,
    /// Filter in Redis; `None` if the daemon has the filter.
    pub(super) filter: Option<Arc<RedisFilterKeys>>,
    /// Calls about held requests.
    pub held: HeldCalls,
    /// Number of replicas that must have a commit, `redis.wait_replicas`.
    pub wanted_replicas: u64,
}

impl Protocol {
    /// Builds the calls of a crawl whose filter is in the daemon's memory.
    pub fn new(
        keys: Keys,
        source: Source,
        sink: Sink,
        held: HeldCalls,
        is_cluster: bool,
        wanted_replicas: u64,
    ) -> Self {
        let mut scripts = BTreeMap::from(SCRIPTS.map(|(name, text)| (name, Script::new(text))));
        scripts.insert("commit", Script::with_kind(NO_KIND, COMMIT));
        let claim_max = if is_cluster { CLAIM_MAX } else { 0 };
        let (has_acl_check, filter) = (false, None);
        Self {
            keys,
            source,
            sink,
            claim_max,
            scripts,
            has_acl_check,
            filter,
            held,
            wanted_replicas,
        }
    }

    /// Returns the protocol with the calls for a filter in Redis.
    #[must_use]
    pub fn with_filter(mut self, filter: Arc<RedisFilterKeys>) -> Self {
        self.scripts.insert("commit", Script::with_kind(&filter.script.lua, COMMIT));
        self.filter = Some(filter);
        self
    }

    /// Chooses the calls that a server of this version supports.
    pub fn use_version(&mut self, version: ServerVersion) {
        self.has_acl_check = version >= ServerVersion::ACL_CHECK;
    }

    /// Returns true if a claim with this result has taken all items of the source.
    pub fn claims_all(&self, claimed: u64) -> bool {
        self.claim_max == 0 || claimed < self.claim_max as u64
    }

    /// Returns everything that the calls need: keys of the right types, and permitted commands.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        self.source.needs(&self.keys, &mut needs);
        self.sink.needs(&self.keys, &mut needs);
        let Keys { lease, state, sink, rejected, record, .. } = &self.keys;
        needs.key(KeyOwner::Setting("rejects.key"), rejected, "list");
        needs.key(KeyOwner::Own("state"), state, "hash");
        needs.key(KeyOwner::Own("lease"), lease, "string");
        needs.key(KeyOwner::Own("crawl record"), record, "hash");
        needs.commands(&[record], &["HMGET $ protocol", "HSET $ protocol 1", "DEL $"]);
        add_needs(&self.held, &mut needs);
        if self.wanted_replicas > 0 {
            needs.commands(&[], &["WAIT 0 1"]);
        }
        needs.commands(&[], &["SCRIPT LOAD return", "EXEC"]);
        let evalsha = format!("EVALSHA {} 1 $", "0".repeat(40));
        needs.commands(&[lease], &[&evalsha, "EVAL return 1 $", "TYPE $", "GET $", "PTTL $"]);
        needs.commands(&[lease], &["SET $ 0 PX 1", "PEXPIRE $ 1", "DEL $"]);
        needs.commands(&[sink], &["TYPE $"]);
        needs.commands(&[state], &["TYPE $", "HMGET $ seq", "HSETNX $ seq 0", "HSET $ seq 0"]);
        needs.commands(&[rejected], &["TYPE $", "LLEN $", "RPUSH $ 0", "LTRIM $ 0 -1"]);
        if let Some(filter) = &self.filter {
            needs.commands(&[state], &["HGET $ unseen"]);
            commit::add_needs(filter, &mut needs);
        } else {
            self.needs_to_forget(&mut needs);
        }
        needs
    }

    /// Asks for the length of the sink.
    pub fn sink_length(&self) -> Cmd {
        self.sink.length(&self.keys.sink)
    }

    /// Asks for the lengths of source, `processing`, sink and rejects.
    pub fn lengths(&self) -> [Cmd; 4] {
        let Keys { source, processing, rejected, .. } = &self.keys;
        [Cmd::llen(source), Cmd::llen(processing), self.sink_length(), Cmd::llen(rejected)]
    }

    /// Waits until the wanted replicas have all earlier writes of the connection, or until a
    /// time-out. Its reply is the number of replicas that have the writes. Inside a transaction or
    /// a script, Redis would not wait.
    pub fn wait(&self) -> Cmd {
        let mut wait = cmd("WAIT");
        wait.arg(self.wanted_replicas).arg(TIMEOUT.as_millis().to_string());
        wait
    }

    /// Builds the commands that load all scripts into a server.
    pub(super) fn load(&self) -> impl Iterator<Item = Cmd> {
        let load = |script: &Script| cmd("SCRIPT").arg("LOAD").arg(&*script.text).clone();
        self.scripts.values().map(load)
    }

    /// Calls a script by its hash. The token is its first argument.
    pub(super) fn call(&self, name: &str, keys: &[&str], token: &Token) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&*self.scripts[name].hash).arg(keys.len()).arg(keys).arg(token.as_str());
        command
    }

    /// Calls a script by its text, so that the server need not have the script.
    pub(super) fn eval(&self, name: &str, keys: &[&str]) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(&*self.scripts[name].text).arg(keys.len()).arg(keys);
        command
    }
}

/// Adds to `needs` the keys and commands for requeuing held requests.
fn add_needs(calls: &HeldCalls, needs: &mut Needs) {
    let HeldCalls { keys, record, .. } = calls;
    let HeldKeys { consumers, requeues, .. } = keys;
    needs.key(KeyOwner::Own("consumers"), consumers, "hash");
    needs.key(KeyOwner::Own("requeues"), requeues, "hash");
    needs.commands(&[consumers], &["HGETALL $", "HGET $ 0", "HDEL $ 0"]);
    needs.commands(&[&keys.held("")], &["HKEYS $", "HGET $ 0", "HDEL $ 0"]);
    needs.commands(&[requeues], &["HGET $ 0", "HSET $ 0 0", "HDEL $ 0"]);
    needs.commands(&[&record.rejects], &["RPUSH $ 0"]);
    let is_sorted = record.sink_kind == "zset";
    let put_back =
        if is_sorted { ["ZADD $ 0 0", "ZRANGE $ 0 0"] } else { ["LPUSH $ 0", "RPUSH $ 0"] };
    needs.commands(&[&record.sink], &put_back);
}
