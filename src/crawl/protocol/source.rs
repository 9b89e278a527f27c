//! Commands for the source, which claim items, read items, and put unread items back, and for the
//! list of items to forget. The daemon claims these items like the items of the source. It removes
//! the items to forget from Redis after the log has recorded that they are forgotten.

use redis::{Cmd, Value};
use urlseen_core::redis::held::Calls;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::{CommandNeed, KeyOwner, Needs};
use urlseen_engine::flow::source::{Cursor, ReadError, Source};
use urlseen_engine::item::Items;

use super::reply::{nonsense, values};
use super::{GivenBack, Protocol, ProtocolError, ScriptError};

impl Protocol {
    /// Returns the source of the crawl's items.
    pub(crate) fn source(&self) -> Source {
        self.source
    }

    /// Returns the keys of the script that begins a run.
    pub(super) fn begin_keys(&self) -> [&str; 3] {
        let Keys { lease, state, processing, .. } = &self.keys;
        [lease, state, processing]
    }

    /// Returns the keys of the scripts that claim items and give them back.
    fn claim_keys(&self) -> [&str; 3] {
        let Keys { lease, source, processing, .. } = &self.keys;
        [lease, source, processing]
    }

    /// Claims the items of the source. While items are claimed, claims at most `more` items, behind
    /// those.
    pub(crate) fn claim(&self, token: &Token, more: u64) -> Cmd {
        let mut command = self.call("claim", &self.claim_keys(), token);
        command.arg(self.claim_max).arg(more);
        command
    }

    /// Reads the reply to [`Protocol::claim`]: the number of claimed items.
    pub(crate) fn claimed(&self, reply: Value) -> Result<Cursor, ProtocolError> {
        let (claimed,) = values("claim", reply)?;
        Ok(claimed)
    }

    /// Reads the items in the reply to [`Source::read`].
    pub(crate) fn items(
        &self,
        reply: Reply,
        after: Cursor,
        count: u64,
    ) -> Result<Items, ProtocolError> {
        self.source.items(reply, after, count).map_err(|error| match error {
            ReadError::Changed(what) => ScriptError::Source { what }.into(),
            ReadError::Unexpected => nonsense("a read", &"no items"),
        })
    }

    /// Puts unread items back into the source, but only if at most `most` items must be moved for
    /// this. Then the script releases the lease, even if it put no items back.
    pub(crate) fn give_back(&self, token: &Token, most: usize) -> Cmd {
        let mut command = self.call("give_back", &self.claim_keys(), token);
        command.arg(most);
        command
    }

    /// Reads the reply to [`Protocol::give_back`].
    pub(crate) fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let (back, left, source) = values("give back", reply)?;
        Ok(GivenBack { back, left, source })
    }

    /// Removes a batch of `count` items that all partitions have. It was read after the cursor
    /// `before`.
    pub(crate) fn routed(&self, token: &Token, before: Cursor, count: u64) -> Cmd {
        let Keys { lease, processing, .. } = &self.keys;
        let mut command = self.call("routed", &[lease, processing], token);
        command.arg(before).arg(count);
        command
    }

    /// Asks for the length of the list of items to forget.
    pub(crate) fn forget_length(&self) -> Cmd {
        Cmd::llen(&self.keys.forget)
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
        needs.key(KeyOwner::Setting("forget.key"), forget, "list");
        needs.key(KeyOwner::Own("forgetting list"), forgetting, "list");
        needs.commands(forget, &["TYPE", "EXISTS", "LLEN"]);
        needs.commands(forgetting, &["TYPE", "LLEN", "LRANGE 0 0", "LTRIM 0 -1"]);
        needs.command(CommandNeed::new("RENAME").key(forget).key(forgetting));
    }

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
    needs.key(KeyOwner::Own("consumers"), consumers, "hash");
    needs.key(KeyOwner::Own("requeues"), requeues, "hash");
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
