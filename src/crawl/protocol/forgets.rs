//! Commands for the list of items to forget. The daemon claims these items like the items of the
//! source. It removes the items from Redis after the log has recorded that they are forgotten.

use redis::{Cmd, Value, cmd};
use urlseen_core::redis::held::Calls;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

use super::reply::values;
use super::{Protocol, ProtocolError};

impl Protocol {
    /// Asks for the length of the list of items to forget.
    pub(crate) fn forget_length(&self) -> Cmd {
        let mut command = cmd("LLEN");
        command.arg(&self.keys.forget);
        command
    }

    /// Claims the items to forget, and reads at most `count` of them.
    pub(crate) fn forgets(&self, token: &Token, count: usize) -> Cmd {
        let keys = &self.keys;
        let keys = [keys.lease.as_str(), &keys.forgetting, &keys.forget];
        let mut command = self.call("forgets", &keys, token);
        command.arg(count);
        command
    }

    /// Reads the reply to [`Protocol::forgets`].
    pub(crate) fn to_forget(&self, reply: Value) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (items,) = values("forgets", reply)?;
        Ok(items)
    }

    /// Removes the first `count` items to forget, and stores `rejects` for the unreadable items.
    pub(crate) fn forgotten(&self, token: &Token, count: usize, rejects: &[Vec<u8>]) -> Cmd {
        let Keys { lease, forgetting, rejected, .. } = &self.keys;
        let keys = [lease.as_str(), forgetting, rejected];
        let mut command = self.call("forgotten", &keys, token);
        command.arg(count).arg(rejects);
        command
    }

    /// Adds to `needs` the keys and commands that the server must permit for forgetting.
    pub(super) fn needs_to_forget(&self, needs: &mut Needs) {
        let (forget, forgetting) = (self.keys.forget.as_str(), self.keys.forgetting.as_str());
        needs.key(KeyOwner::Setting("forget.key"), forget, KeyKind::List);
        needs.key(KeyOwner::Own("forgetting list"), forgetting, KeyKind::List);
        needs.commands(forget, &["TYPE", "EXISTS", "LLEN"]);
        needs.commands(forgetting, &["TYPE", "LLEN", "LRANGE 0 0", "LTRIM 0 -1"]);
        needs.command(CommandNeed::new("RENAME").key(forget).key(forgetting));
    }
}

impl Protocol {
    /// Asks for the number of requests that these consumers hold.
    pub(crate) fn held_length<'c>(&self, consumers: impl Iterator<Item = &'c str>) -> Cmd {
        let keys: Vec<_> = consumers.map(|consumer| self.held.keys().held(consumer)).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        self.eval("held_length", &keys)
    }
}

/// Adds to `needs` the keys and commands for requeuing held requests.
pub(super) fn add_needs(calls: &Calls, needs: &mut Needs) {
    let (keys, record) = (calls.keys(), calls.record());
    let (consumers, requeues) = (keys.consumers.as_str(), keys.requeues.as_str());
    let (rejected, sink) = (record.rejects.as_str(), record.sink.as_str());
    needs.key(KeyOwner::Own("consumers"), consumers, KeyKind::Hash);
    needs.key(KeyOwner::Own("requeues"), requeues, KeyKind::Hash);
    let held = keys.held("");
    let held = held.as_str();
    needs.commands(consumers, &["HGETALL", "HGET 0", "HDEL 0"]);
    needs.commands(held, &["HKEYS", "HGET 0", "HDEL 0"]);
    needs.commands(requeues, &["HGET 0", "HSET 0 0", "HDEL 0"]);
    needs.commands(rejected, &["RPUSH 0"]);
    let is_sorted = record.sink_kind == "zset";
    needs.commands(
        sink,
        if is_sorted { &["ZADD 0 0", "ZRANGE 0 0"] } else { &["LPUSH 0", "RPUSH 0"] },
    );
}
