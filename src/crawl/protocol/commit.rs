//! Commands that commit a batch, and the reply of Redis.

use redis::{Cmd, Value};
use urlseen_core::filter::RedisFilterKeys;
use urlseen_core::filter::redis_kind::Question;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::packed::Packed;
use urlseen_core::redis::preflight::{CommandNeed, KeyOwner, Needs};
use urlseen_core::redis::sink::ListSink;
use urlseen_engine::flow::source::Cursor;
use urlseen_engine::item::batch::{Batch, Ready};

use super::reply::values;
use super::{Committed, Protocol, ProtocolError};

/// Arguments of a commit.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Token of the lease under which the daemon commits.
    pub token: &'a Token,
    /// Batch to commit. With a filter in Redis, Redis tests its items during the commit.
    pub batch: &'a Batch<Ready>,
    /// Rejects for those items of the batch that the daemon could not read.
    pub rejects: &'a [Vec<u8>],
    /// Cursor before the first item of the batch.
    pub before: Cursor,
    /// Maximum number of rejects to keep; 0 for no limit. Above the limit, the script drops the
    /// oldest rejects.
    pub rejects_max: u64,
}

/// Maximum number of items that a script pushes to a list. For more items, a plain push in a
/// transaction costs Redis less than passing the items through Lua.
const SMALL_ITEMS: usize = 64;

/// Maximum number of bytes that a script pushes to a list.
const SMALL_BYTES: usize = 64 << 10;

/// Commands that commit a batch, as one script or as a transaction.
#[derive(Debug)]
pub enum Commit {
    /// One script that checks everything, and then pushes.
    Script(Cmd),
    /// A plain push and a script, in one transaction. The script completes the commit, or undoes
    /// the push.
    Transaction {
        /// First the probes, and then the push. A probe fails if Redis would not permit the script
        /// to undo the push.
        push: Vec<Packed>,
        /// Script that checks the push and completes the commit.
        script: Cmd,
    },
}

impl Protocol {
    /// Builds the commands that commit a batch.
    pub fn commit(&self, order: Order<'_>) -> Commit {
        match (&self.filter, self.sink.plain()) {
            (Some(filter), _) => Commit::Script(self.commit_shared(order, filter)),
            (None, Some(sink)) if !self.has_acl_check || !is_small(order.batch) => {
                self.commit_pushed(order, sink)
            }
            (None, _) => Commit::Script(self.commit_pushing(order)),
        }
    }

    /// Builds the commit of a batch by a plain push and a script. The daemon has tested the items.
    fn commit_pushed(&self, order: Order<'_>, plain: &ListSink) -> Commit {
        let Order { batch, rejects, .. } = order;
        let sink = &self.keys.sink;
        let mut last = None;
        let mut items = batch.onward().inspect(|item| last = Some(*item));
        let count = batch.onward_len();
        let bytes = batch.onward().map(<[u8]>::len).sum();
        let mut push = Vec::new();
        if count > 0 {
            push = plain.gate(sink);
            push.push(plain.push(sink, count, bytes, &mut items));
        }
        drop(items);
        // The script is sent as text. If its hash were sent, and Redis did not know it, the script
        // would fail after the push.
        let mut script = self.eval("commit", &self.own_keys(&[]));
        script.arg(order.token.as_str());
        self.begin_commit(order, &mut script);
        script.arg(count).arg(last.unwrap_or_default()).arg(rejects);
        Commit::Transaction { push, script }
    }

    /// Builds the commit of a batch by one script. The script gets the items as arguments, and
    /// pushes them.
    fn commit_pushing(&self, order: Order<'_>) -> Cmd {
        let Order { token, batch, rejects, .. } = order;
        let mut command = self.call("commit_pushing", &self.own_keys(&[]), token);
        self.begin_commit(order, &mut command);
        command.arg(batch.onward_len());
        self.push_items(order, &mut command);
        command.arg(rejects);
        command
    }

    /// Appends the items to emit to the arguments, in the form that the sink's functions take.
    fn push_items(&self, order: Order<'_>, command: &mut Cmd) {
        for (item, score) in order.batch.onward().zip(order.batch.onward_scores()) {
            command.arg(&*self.sink.argument(item, score));
        }
    }

    /// Builds the commit of a batch to a filter in Redis. The script gets the items that may be
    /// unseen, and the places in the filter at which it tests them.
    fn commit_shared(&self, order: Order<'_>, filter: &RedisFilterKeys) -> Cmd {
        let Order { token, batch, rejects, .. } = order;
        let Question { keys, places, extras } = filter.question(batch.onward_fingerprints());
        let mut command = self.call("commit_shared", &self.own_keys(&keys), token);
        self.begin_commit(order, &mut command);
        command.arg(batch.onward_len()).arg(extras.len()).arg(places);
        self.push_items(order, &mut command);
        command.arg(extras).arg(rejects);
        command
    }

    /// Returns the maximum number of items that Redis may test in one commit. Returns `None` if the
    /// daemon tests the items.
    pub(crate) fn most_judged(&self) -> Option<usize> {
        self.filter.as_ref().map(|filter| filter.most_judged())
    }

    /// Returns the Redis keys of a commit: first the keys that all commits share, then the keys in
    /// `filter`.
    fn own_keys<'a>(&'a self, filter: &'a [String]) -> Vec<&'a str> {
        let Keys { lease, state, processing, sink, rejected, .. } = &self.keys;
        let own: [&str; 5] = [lease, state, processing, sink, rejected];
        own.into_iter().chain(filter.iter().map(String::as_str)).collect()
    }

    /// Appends the arguments that all commits share to the command.
    fn begin_commit(&self, order: Order<'_>, command: &mut Cmd) {
        let Order { batch, before, rejects_max, .. } = order;
        for head in [batch.base(), batch.head()] {
            command.arg(head.seq).arg(head.commit_id.to_string());
        }
        command.arg(before).arg(batch.items().len()).arg(rejects_max);
    }

    /// Reads the reply to [`Protocol::commit`]. The result of a transaction is the reply to its
    /// last command.
    pub(crate) fn committed(
        &self,
        reply: Value,
        is_transaction: bool,
    ) -> Result<Committed, ProtocolError> {
        let reply = match reply {
            Value::Array(mut replies) if is_transaction => replies.pop().unwrap_or(Value::Nil),
            other => other,
        };
        if self.filter.is_some() {
            let (sink, rejected, dropped, unseen) = values("commit", reply)?;
            return Ok(Committed { sink, rejected, dropped, unseen });
        }
        let (sink, rejected, dropped) = values("commit", reply)?;
        Ok(Committed { sink, rejected, dropped, unseen: None })
    }
}

/// Returns true if a script can push the batch at less cost than a transaction.
fn is_small(batch: &Batch<Ready>) -> bool {
    batch.onward_len() <= SMALL_ITEMS
        && batch.onward().map(<[u8]>::len).sum::<usize>() <= SMALL_BYTES
}

/// Adds the keys and commands of a filter in Redis to `needs`. The server must permit them.
pub(super) fn add_needs(filter: &RedisFilterKeys, needs: &mut Needs) {
    for &(number, content) in filter.keys() {
        let kind = content.type_name();
        needs.key(KeyOwner::Setting("filter.key"), filter.key(number), kind);
    }
    let Some(&(first, _)) = filter.keys().first() else { return };
    let key = filter.key(first);
    for words in filter.script().commands {
        let [word, arguments @ ..] = words else { continue };
        let command = CommandNeed::new(word).key(key.as_str());
        needs.command(arguments.iter().fold(command, |command, word| command.arg(*word)));
    }
}
