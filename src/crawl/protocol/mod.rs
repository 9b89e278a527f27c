//! Commands that run the crawl's scripts in Redis, and functions that read the replies.

mod commit;
mod persistence;
pub(crate) mod record;
mod reply;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::{Cmd, Value, cmd};

pub use commit::{Commit, Order};
pub(crate) use persistence::{Persistence, replicas};
pub(crate) use record::record;
pub(crate) use reply::{Committed, GivenBack, ProtocolError, ScriptError, Standing};
use reply::{FORMAT, nonsense, value, values};
use urlseen_core::filter::RedisFilterKeys;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::held;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::{LEASE, LeaseHolder, Token};
use urlseen_core::redis::preflight::{CommandNeed, KeyOwner, Needs, ServerVersion};
use urlseen_core::redis::script::{COMMON, Script};
use urlseen_core::redis::sink::Sink;
use urlseen_core::storage::Head;
use urlseen_engine::config::{Config, End};
pub(crate) use urlseen_engine::flow::source::Cursor;
use urlseen_engine::flow::source::Source;

/// Maximum number of claimed items that the daemon moves back to the source when it ends. If the
/// source or the list of claimed items is empty, one rename is enough. Otherwise the move blocks
/// all other clients of Redis for about a microsecond per item.
pub(crate) const GIVE_BACK_MAX: usize = 20_000;

/// Maximum number of items that one claim moves in a Redis Cluster. While a slot is being moved, a
/// long list blocks the nodes, so the list of claimed items stays short there.
const CLAIM_MAX: usize = 20_000;

/// Functions that all scripts share, in addition to [`COMMON`].
const SHARED: &str = include_str!("lua/shared.lua");

/// Functions for the list of rejects.
const REJECTING: &str = include_str!("lua/rejecting.lua");

/// Template of all commits: it needs the functions of the sink.
const COMMITTING: &str = include_str!("lua/committing.lua");

/// Functions that remove items from a list of claimed items.
const REMOVING: &str = include_str!("lua/removing.lua");

/// Function that moves items between source and processing list.
const MOVING: &str = include_str!("lua/moving.lua");

/// Builder of the commands to Redis for one crawl, and reader of their replies.
pub struct Protocol {
    keys: Keys,
    source: Source,
    sink: Box<dyn Sink>,
    /// Maximum number of items that one claim moves; 0 for all items.
    claim_max: usize,
    /// Scripts by the names of their files.
    scripts: BTreeMap<&'static str, Script>,
    /// True if a script can check the permissions of its user. Then a small batch needs neither a
    /// plain push nor the probes that precede such a push.
    has_acl_check: bool,
    /// Filter in Redis; `None` if the daemon has the filter.
    filter: Option<Arc<RedisFilterKeys>>,
    held: held::Calls,
    /// Number of replicas that must have a commit.
    wanted_replicas: u64,
}

impl Protocol {
    /// Builds the calls of the configured crawl, for a filter in the daemon's memory. The sink adds
    /// its part of the scripts.
    pub fn new(config: &Config) -> Self {
        let keys = config.keys();
        let (source, sink) = (Source::new(config.source.take_from), config.open_sink());
        let held = held::Calls::new(record(config, &keys));
        let from = source.lua();
        let pushing = [&from, REMOVING, REJECTING, &sink.lua_push(), COMMITTING];
        let forgotten = [&Source::new(End::Left).lua(), REMOVING, REJECTING];
        let mut scripts = BTreeMap::from([
            ("begin", script(&[], include_str!("lua/begin.lua"))),
            ("claim", script(&[&from, MOVING], include_str!("lua/claim.lua"))),
            ("commit_pushing", script(&pushing, include_str!("lua/commit_pushing.lua"))),
            ("drop", script(&[], include_str!("lua/drop.lua"))),
            ("forgets", script(&[], include_str!("lua/forgets.lua"))),
            ("forgotten", script(&forgotten, include_str!("lua/forgotten.lua"))),
            ("routed", script(&[&from, REMOVING], include_str!("lua/routed.lua"))),
            ("give_back", script(&[&from, MOVING], include_str!("lua/give_back.lua"))),
            ("held_length", Script::new(include_str!("lua/held_length.lua"))),
            ("look", script(&[], include_str!("lua/look.lua"))),
            ("own", script(&[], include_str!("lua/own.lua"))),
            ("release", script(&[], include_str!("lua/release.lua"))),
            ("renew", script(&[], include_str!("lua/renew.lua"))),
        ]);
        if let Some(plain) = sink.plain() {
            let parts = [&from, REMOVING, REJECTING, &plain.lua(), COMMITTING];
            scripts.insert("commit", script(&parts, include_str!("lua/commit.lua")));
        }
        let claim_max = if config.redis.url.is_cluster() { CLAIM_MAX } else { 0 };
        let wanted_replicas = config.redis.wait_replicas;
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
    pub(crate) fn with_filter(mut self, filter: Arc<RedisFilterKeys>) -> Self {
        let (from, to) = (self.source.lua(), self.sink.lua_push());
        let kind = &filter.script().lua;
        let parts = [&from, REMOVING, REJECTING, &to, kind, COMMITTING];
        self.scripts.insert("commit_shared", script(&parts, include_str!("lua/commit_shared.lua")));
        self.filter = Some(filter);
        self
    }

    /// Chooses the calls that a server of this version supports.
    pub(crate) fn use_version(&mut self, version: ServerVersion) {
        self.has_acl_check = version >= ServerVersion::ACL_CHECK;
    }

    /// Returns true if a claim with this result has taken all items of the source.
    pub(crate) fn claims_all(&self, claimed: u64) -> bool {
        self.claim_max == 0 || claimed < self.claim_max as u64
    }

    /// Returns the names of the crawl's keys in Redis.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns everything that the calls need: keys of the right types, and permitted commands.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        self.source.needs(&self.keys, &mut needs);
        self.sink.needs(&self.keys, &mut needs);
        let Keys { lease, state, sink, rejected, .. } = &self.keys;
        needs.key(KeyOwner::Setting("rejects.key"), rejected.as_str(), "list");
        needs.key(KeyOwner::Own("state"), state.as_str(), "hash");
        needs.key(KeyOwner::Own("lease"), lease.as_str(), "string");
        let record = self.keys.record.as_str();
        needs.key(KeyOwner::Own("crawl record"), record, "hash");
        needs.commands(record, &["HMGET protocol", "HSET protocol 1", "DEL"]);
        source::add_needs(&self.held, &mut needs);
        let command = CommandNeed::new;
        if self.wanted_replicas > 0 {
            needs.command(command("WAIT").arg("0").arg("1"));
        }
        needs.command(command("SCRIPT LOAD").arg("return 1"));
        needs.command(command("EVALSHA").arg("0".repeat(40)).arg("1").key(lease.as_str()));
        needs.command(command("EXEC"));
        needs.command(command("EVAL").arg("return 1").arg("1").key(lease.as_str()));
        for key in [lease, state, sink, rejected] {
            needs.commands(key, &["TYPE"]);
        }
        needs.commands(lease, &["GET", "PTTL", "SET 0 PX 1", "PEXPIRE 1", "DEL"]);
        needs.commands(state, &["HMGET seq", "HSETNX seq 0", "HSET seq 0"]);
        needs.commands(rejected, &["LLEN", "RPUSH 0", "LTRIM 0 -1"]);
        if let Some(filter) = &self.filter {
            needs.commands(state, &["HGET unseen"]);
            commit::add_needs(filter, &mut needs);
        } else {
            self.needs_to_forget(&mut needs);
        }
        needs
    }

    /// Builds the commands that load all scripts into a server.
    pub(crate) fn load(&self) -> impl Iterator<Item = Cmd> {
        self.scripts.values().map(Script::load)
    }

    /// Takes the lease. Succeeds also if the holder is an earlier connection of the same run, or a
    /// run in `dead`.
    pub(crate) fn own(&self, token: &Token, holder: &LeaseHolder, dead: &[RandomId]) -> Cmd {
        let mut command = self.call("own", &self.begin_keys(), token);
        command.arg(holder.to_json()).arg(milliseconds());
        for run in dead {
            command.arg(run.to_string());
        }
        command
    }

    /// Asks for the crawl's state without the lease, and changes nothing. Makes all checks of
    /// [`Protocol::own`], except for the holder of the lease.
    pub(crate) fn peek(&self) -> Cmd {
        let mut command = self.eval("own", &self.begin_keys());
        command.arg("").arg("").arg(0);
        command
    }

    /// Reads the reply to [`Protocol::own`] or [`Protocol::peek`].
    pub(crate) fn owned(&self, reply: Value) -> Result<Standing, ProtocolError> {
        type Owned = (String, String, String, String, Cursor, String);
        let (seq, commit_id, format, filter, cursor, unseen): Owned = values("own", reply)?;
        if !format.is_empty() && format != FORMAT {
            return Err(ProtocolError::Format { found: format });
        }
        let head = match (seq.as_str(), commit_id.as_str()) {
            ("", "") => None,
            found => Some(Head::parse(&seq, &commit_id).ok_or_else(|| nonsense("own", &found))?),
        };
        let filter = RandomId::parse(&filter);
        Ok(Standing { head, filter, cursor, unseen: unseen.parse().unwrap_or(0) })
    }

    /// Ties the crawl's state to a filter. If Redis has no state of the crawl, the crawl begins at
    /// `head`.
    pub(crate) fn begin(&self, token: &Token, filter: RandomId, head: Head) -> Cmd {
        let Head { seq, commit_id } = head;
        let Keys { lease, state, record, .. } = &self.keys;
        let mut command = self.call("begin", &[lease, state, record], token);
        command.arg(filter.to_string()).arg(FORMAT);
        command.arg(seq).arg(commit_id.to_string()).arg(self.held.record().fields());
        command
    }

    /// Returns the calls about held requests.
    pub(crate) fn held(&self) -> &held::Calls {
        &self.held
    }

    /// Asks for the crawl's head and for the holder of its lease.
    pub(crate) fn look(&self) -> Cmd {
        self.eval("look", &[&self.keys.lease, &self.keys.state])
    }

    /// Reads the reply to [`Protocol::look`].
    pub(crate) fn place(
        &self,
        reply: Value,
    ) -> Result<(Option<Head>, Option<LeaseHolder>), ProtocolError> {
        let (seq, commit_id, lease): (String, String, String) = values("look", reply)?;
        Ok((Head::parse(&seq, &commit_id), LeaseHolder::of_lease(&lease)))
    }

    /// Renews the lease for its full time.
    pub(crate) fn renew(&self, token: &Token) -> Cmd {
        let mut command = self.call("renew", &[&self.keys.lease], token);
        command.arg(milliseconds());
        command
    }

    /// Reads the reply to [`Protocol::begin`], [`Protocol::renew`], [`Protocol::drop_crawl`] or
    /// [`Protocol::release`].
    pub(crate) fn done(&self, reply: Value) -> Result<(), ProtocolError> {
        values("a script", reply)
    }

    /// Deletes the crawl's state and its record.
    pub(crate) fn drop_crawl(&self, token: &Token) -> Cmd {
        let Keys { lease, state, record, .. } = &self.keys;
        self.call("drop", &[lease, state, record], token)
    }

    /// Releases the lease if a connection of the token's run holds it. The lease of another run
    /// stays.
    pub(crate) fn release(&self, token: &Token) -> Cmd {
        self.call("release", &[&self.keys.lease], token)
    }

    /// Asks for the length of the source.
    pub(crate) fn source_length(&self) -> Cmd {
        Cmd::llen(&self.keys.source)
    }

    /// Asks for the length of the sink.
    pub(crate) fn sink_length(&self) -> Cmd {
        self.sink.length(&self.keys.sink)
    }

    /// Asks for the number of rejects.
    pub(crate) fn rejected_length(&self) -> Cmd {
        Cmd::llen(&self.keys.rejected)
    }

    /// Asks for the lengths of source, `processing`, sink and rejects.
    pub(crate) fn lengths(&self) -> [Cmd; 4] {
        let processing = Cmd::llen(&self.keys.processing);
        [self.source_length(), processing, self.sink_length(), self.rejected_length()]
    }

    /// Reads the reply to `INFO`, for [`Persistence::horizon`].
    pub(crate) fn info(&self, reply: Value) -> Result<String, ProtocolError> {
        value("INFO", reply)
    }

    /// Reads the reply to a command that asks for a length.
    pub(crate) fn length(&self, reply: Value) -> Result<u64, ProtocolError> {
        value("a length", reply)
    }

    /// Returns the scripts by name, for a simulated server.
    #[cfg(test)]
    pub(crate) fn scripts(&self) -> impl Iterator<Item = (&'static str, &Script)> {
        self.scripts.iter().map(|(name, script)| (*name, script))
    }

    /// Calls a script by its hash. The token is its first argument.
    fn call(&self, name: &str, keys: &[&str], token: &Token) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(self.scripts[name].hash()).arg(keys.len()).arg(keys).arg(token.as_str());
        command
    }

    /// Calls a script by its text, so that the server need not have the script.
    fn eval(&self, name: &str, keys: &[&str]) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(self.scripts[name].text()).arg(keys.len()).arg(keys);
        command
    }
}

/// Builds a script from the shared functions, `parts` and `text`.
fn script(parts: &[&str], text: &str) -> Script {
    Script::new(&[&[COMMON, SHARED], parts, &[text]].concat().join("\n"))
}

fn milliseconds() -> u64 {
    u64::try_from(LEASE.as_millis()).expect("a lease is short")
}
