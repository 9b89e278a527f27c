//! Calls to Redis and their replies: one place for each script.

mod commit;
mod forgets;
mod judging;
mod persistence;
mod reclaiming;
mod record;
mod reply;
#[cfg(test)]
mod scripts;
mod source;

use std::sync::Arc;

use redis::{Cmd, Value, cmd};

pub use commit::{Commit, Order, Rejects};
use forgets::Forgets;
pub(crate) use persistence::Persistence;
pub(crate) use record::record;
pub(crate) use reply::{Committed, GivenBack, ProtocolError, ScriptError, Standing};
use reply::{FORMAT, ScriptReply, nonsense};
use urlseen_core::filter::RedisFilterKeys;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::held;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::{LEASE, LeaseHolder, Token};
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs, ServerVersion};
use urlseen_core::redis::script::{COMMON, Script};
use urlseen_core::redis::sink::Sink;
use urlseen_core::redis_filter::judge::Judge;
use urlseen_core::storage::Head;
use urlseen_engine::config::Config;
pub(crate) use urlseen_engine::flow::source::Cursor;
use urlseen_engine::flow::source::{Source, open};

/// Most items that a clean exit should move to give back the claimed ones. If one of the two lists
/// is empty, one rename gives back all. Otherwise Redis serves no other client for about a
/// microsecond an item; this bounds that time.
pub(crate) const GIVE_BACK_MAX: usize = 20_000;

/// Functions that all scripts share, in addition to [`COMMON`].
const SHARED: &str = include_str!("lua/shared.lua");

/// Functions that all commits share.
const COMMITTING: &str = include_str!("lua/committing.lua");

/// Calls for one crawl's keys, source and sink.
pub struct Protocol {
    keys: Keys,
    source: Box<dyn Source>,
    sink: Box<dyn Sink>,
    own: Script,
    begin: Script,
    look: Script,
    rejected_length: Script,
    renew: Script,
    claim: Script,
    commit: Script,
    /// Commits a small batch to a sink that a plain command pushes to.
    commit_small: Option<Script>,
    /// True if a script can ask Redis for its user's permissions; then no small batch needs probes.
    has_acl_check: bool,
    /// The filter in Redis and the script that commits to it; `None` if the daemon has the filter.
    shared: Option<(Judge, Script)>,
    give_back: Script,
    drop: Script,
    forgets: Forgets,
    release: Script,
    held: held::Calls,
}

impl Protocol {
    /// Builds the calls of the configured crawl, for a filter in the daemon's memory. Source and
    /// sink add their parts of the scripts.
    pub fn new(config: &Config) -> Self {
        let keys = config.keys();
        let (source, sink) = (open(&config.source), config.open_sink());
        let held = held::Calls::new(record(config, &keys));
        let (from, around) = (source.lua_commit(), source.lua_session());
        let pushing =
            script(&[&from, COMMITTING, &sink.lua_push()], include_str!("lua/commit_pushing.lua"));
        let (commit, commit_small) = match sink.plain() {
            Some(plain) => {
                let parts = [&from, COMMITTING, &plain.lua()];
                (script(&parts, include_str!("lua/commit.lua")), Some(pushing))
            }
            None => (pushing, None),
        };
        Self {
            own: script(&[&around], include_str!("lua/own.lua")),
            begin: script(&[], include_str!("lua/begin.lua")),
            look: script(&[], include_str!("lua/look.lua")),
            rejected_length: Script::new(include_str!("lua/rejected_length.lua")),
            renew: script(&[], include_str!("lua/renew.lua")),
            claim: script(&[&around], include_str!("lua/claim.lua")),
            commit,
            commit_small,
            has_acl_check: false,
            shared: None,
            give_back: script(&[&around], include_str!("lua/give_back.lua")),
            drop: script(&[], include_str!("lua/drop.lua")),
            forgets: Forgets::new(),
            release: script(&[], include_str!("lua/release.lua")),
            held,
            keys,
            source,
            sink,
        }
    }

    /// Adds the calls for a filter in Redis.
    #[must_use]
    pub(crate) fn with_filter(mut self, filter: Arc<RedisFilterKeys>) -> Self {
        let judge = Judge::new(filter);
        let (from, to) = (self.source.lua_commit(), self.sink.lua_push());
        let parts = [&from, COMMITTING, &to, &judge.lua()];
        self.shared = Some((judge, script(&parts, include_str!("lua/commit_shared.lua"))));
        self
    }

    /// Uses the features of a server of this version.
    pub(crate) fn use_version(&mut self, version: ServerVersion) {
        self.has_acl_check = version >= ServerVersion::ACL_CHECK;
    }

    /// Keys of the crawl in Redis.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Collects the needs of all calls: keys of the right types, and permission to use them.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        self.source.needs(&self.keys, &mut needs);
        self.sink.needs(&self.keys, &mut needs);
        let Keys { lease, state, sink, rejected, oversize, .. } = &self.keys;
        needs.key(KeyOwner::Own("list of oversize items"), oversize.as_str(), KeyKind::List);
        needs.key(KeyOwner::Setting("rejects.key"), rejected.as_str(), KeyKind::List);
        needs.key(KeyOwner::Own("state"), state.as_str(), KeyKind::Hash);
        needs.key(KeyOwner::Own("lease"), lease.as_str(), KeyKind::String);
        let record = self.keys.record.as_str();
        needs.key(KeyOwner::Own("crawl record"), record, KeyKind::Hash);
        needs.commands(record, &["HMGET protocol", "HSET protocol 1", "DEL"]);
        reclaiming::add(&self.held, &mut needs);
        let command = CommandNeed::new;
        needs.command(command("SCRIPT LOAD").arg("return 1"));
        needs.command(command("EVALSHA").arg("0".repeat(40)).arg("1").key(lease.as_str()));
        needs.command(command("EXEC"));
        needs.command(command("EVAL").arg("return 1").arg("1").key(lease.as_str()));
        for key in [lease, state, sink, rejected, oversize] {
            needs.commands(key, &["TYPE"]);
        }
        needs.commands(lease, &["GET", "PTTL", "SET 0 PX 1", "PEXPIRE 1", "DEL"]);
        needs.commands(state, &["HMGET seq", "HSETNX seq 0", "HSET seq 0"]);
        for list in [rejected, oversize] {
            needs.commands(list, &["LLEN", "RPUSH 0", "LTRIM 0 -1"]);
        }
        if let Some((judge, _)) = &self.shared {
            needs.commands(state, &["HGET unseen"]);
            judging::add(judge.filter(), &mut needs);
        } else {
            self.needs_to_forget(&mut needs);
        }
        needs
    }

    /// Loads the scripts into a server, which may have lost them.
    pub(crate) fn load(&self) -> impl Iterator<Item = Cmd> {
        let scripts = [&self.own, &self.begin, &self.renew, &self.claim, &self.give_back];
        let shared = self.shared.iter().map(|(_, script)| script);
        let pushing = self.sink.plain().is_none().then_some(&self.commit);
        let pushing = pushing.or(self.commit_small.as_ref());
        let more = [&self.drop, &self.release].into_iter().chain(self.forgets.scripts());
        scripts.into_iter().chain(more).chain(pushing).chain(shared).map(Script::load)
    }

    /// Takes the lease. An earlier connection of the same run or a run in `dead` may hold it.
    pub(crate) fn own(&self, token: &Token, holder: &LeaseHolder, dead: &[RandomId]) -> Cmd {
        let mut command = call(&self.own, &self.session_keys());
        command.arg(token.as_str()).arg(holder.to_json()).arg(milliseconds());
        for run in dead {
            command.arg(run.to_string());
        }
        command
    }

    /// Reads the reply to [`Protocol::own`].
    pub(crate) fn owned(&self, reply: Value) -> Result<Standing, ProtocolError> {
        let mut answer = ScriptReply::new("own", reply)?;
        if answer.status == "held" {
            let holder = LeaseHolder::of_lease(&answer.text()?);
            let milliseconds = answer.number()?;
            let (seq, commit_id, filter) = (answer.text()?, answer.text()?, answer.text()?);
            let (head, filter) = (Head::parse(&seq, &commit_id), RandomId::parse(&filter));
            let holder = holder.map(Box::new);
            return Err(ProtocolError::Held { holder, milliseconds, head, filter });
        }
        answer.ok()?;
        let (seq, commit_id, format) = (answer.text()?, answer.text()?, answer.text()?);
        let filter = RandomId::parse(&answer.text()?);
        let cursor = self.cursor(&mut answer)?;
        let unseen = answer.text()?.parse().unwrap_or(0);
        if !format.is_empty() && format != FORMAT {
            return Err(ProtocolError::Format { found: format });
        }
        let head = match (seq.as_str(), commit_id.as_str()) {
            ("", "") => None,
            found => Some(Head::parse(&seq, &commit_id).ok_or_else(|| nonsense("own", &found))?),
        };
        Ok(Standing { head, filter, cursor, unseen })
    }

    /// Ties the crawl's state to a filter. If Redis has no state of the crawl, the crawl begins at
    /// `head`.
    pub(crate) fn begin(&self, token: &Token, filter: RandomId, head: Head) -> Cmd {
        let Head { seq, commit_id } = head;
        let Keys { lease, state, record, .. } = &self.keys;
        let mut command = call(&self.begin, &[lease, state, record]);
        command.arg(token.as_str()).arg(filter.to_string()).arg(FORMAT);
        command.arg(seq).arg(commit_id.to_string()).arg(self.held.record().fields());
        command
    }

    /// Returns the calls about held requests.
    pub(crate) fn held(&self) -> &held::Calls {
        &self.held
    }

    /// Asks for the crawl's head and for the holder of its lease.
    pub(crate) fn look(&self) -> Cmd {
        eval(&self.look, &[&self.keys.lease, &self.keys.state])
    }

    /// Reads the reply to [`Protocol::look`].
    pub(crate) fn place(
        &self,
        reply: Value,
    ) -> Result<(Option<Head>, Option<LeaseHolder>), ProtocolError> {
        let mut answer = ScriptReply::new("look", reply)?;
        answer.ok()?;
        let (seq, commit_id, lease) = (answer.text()?, answer.text()?, answer.text()?);
        Ok((Head::parse(&seq, &commit_id), LeaseHolder::of_lease(&lease)))
    }

    /// Renews the lease for its full time.
    pub(crate) fn renew(&self, token: &Token) -> Cmd {
        let mut command = call(&self.renew, &[&self.keys.lease]);
        command.arg(token.as_str()).arg(milliseconds());
        command
    }

    /// Reads the reply to [`Protocol::begin`], [`Protocol::renew`], [`Protocol::drop_crawl`] or
    /// [`Protocol::release`].
    pub(crate) fn done(&self, reply: Value) -> Result<(), ProtocolError> {
        ScriptReply::new("a script", reply)?.ok()
    }

    /// Deletes the crawl's state and its record.
    pub(crate) fn drop_crawl(&self, token: &Token) -> Cmd {
        let Keys { lease, state, record, .. } = &self.keys;
        let mut command = call(&self.drop, &[lease, state, record]);
        command.arg(token.as_str());
        command
    }

    /// Releases the lease if any connection of the token's run took it; another run's lease stays.
    pub(crate) fn release(&self, token: &Token) -> Cmd {
        let mut command = call(&self.release, &[&self.keys.lease]);
        command.arg(token.as_str());
        command
    }

    /// Asks for the length of the sink.
    pub(crate) fn sink_length(&self) -> Cmd {
        self.sink.length(&self.keys.sink)
    }

    /// Asks for the number of rejects, with and without their items in them.
    pub(crate) fn rejected_length(&self) -> Cmd {
        eval(&self.rejected_length, &[&self.keys.rejected, &self.keys.oversize])
    }

    /// Asks for the lengths of source, `processing`, sink and rejects.
    pub(crate) fn lengths(&self) -> [Cmd; 4] {
        let mut processing = cmd("LLEN");
        processing.arg(&self.keys.processing);
        [self.source_length(), processing, self.sink_length(), self.rejected_length()]
    }

    /// Asks for the server's saves and replicas, which tell how far back Redis may fall.
    pub(crate) fn persistence(&self) -> Cmd {
        cmd("INFO")
    }

    /// Reads the reply to [`Protocol::persistence`], for [`Persistence::horizon`].
    pub(crate) fn info(&self, reply: Value) -> Result<String, ProtocolError> {
        redis::from_redis_value(reply).map_err(|error| nonsense("INFO", &error))
    }

    /// Reads the reply to a question for a length.
    pub(crate) fn length(&self, reply: Value) -> Result<u64, ProtocolError> {
        redis::from_redis_value(reply).map_err(|error| nonsense("a length", &error))
    }
}

/// Builds a script of the shared functions, these parts and its own text.
fn script(parts: &[&str], text: &str) -> Script {
    Script::new(&[&[COMMON, SHARED], parts, &[text]].concat().join("\n"))
}

fn call(script: &Script, keys: &[&str]) -> Cmd {
    let mut command = cmd("EVALSHA");
    command.arg(script.hash()).arg(keys.len()).arg(keys);
    command
}

/// Calls a script by its text, for servers that may not have it.
fn eval(script: &Script, keys: &[&str]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(script.text()).arg(keys.len()).arg(keys);
    command
}

fn milliseconds() -> u64 {
    u64::try_from(LEASE.as_millis()).expect("a lease is short")
}
