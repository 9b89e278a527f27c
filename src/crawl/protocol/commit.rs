//! The commit of a batch.

use redis::{Cmd, Value};

use super::reply::ScriptReply;
use super::{Committed, Protocol, ProtocolError, Script, call, eval};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::packed::Packed;
use urlseen_core::redis::reject::Written;
use urlseen_core::redis::sink::PlainSink;
use urlseen_core::redis_filter::judge::{Judge, Question};
use urlseen_engine::flow::source::Cursor;
use urlseen_engine::item::batch::{Batch, Ready};

/// Arguments of a commit.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// Token of the lease under which the daemon commits.
    pub token: &'a Token,
    /// The batch that is committed.
    pub batch: &'a Batch<Ready>,
    /// Rejects that the batch has.
    pub rejects: &'a Rejects,
    /// Cursor before the first item of the batch.
    pub before: Cursor,
    /// Maximum length of the rejects list. Above it the script drops the oldest rejects; 0: no
    /// limit.
    pub rejects_max: u64,
}

/// Most items that a script pushes to a list. Beyond that, handing items to Lua and back costs
/// Redis more than the transaction around a plain push.
const SMALL_ITEMS: usize = 64;

/// Maximum number of bytes that a script pushes to a list.
const SMALL_BYTES: usize = 64 << 10;

/// Rejects of a batch, as JSON.
#[derive(Debug, Default, Clone)]
pub struct Rejects {
    /// Rejects that contain their items.
    pub(crate) whole: Vec<Vec<u8>>,
    /// Rejects of items that are too large to be in one, each after the place of its item;
    /// ascending.
    pub(crate) oversize: Vec<(usize, Vec<u8>)>,
}

impl Rejects {
    /// Adds the reject of the item at a place. Places ascend.
    pub(crate) fn push(&mut self, place: usize, reject: Written) {
        if reject.is_oversize {
            self.oversize.push((place, reject.json));
        } else {
            self.whole.push(reject.json);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.whole.len() + self.oversize.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the JSON of all rejects.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let oversize = self.oversize.iter().map(|(_, json)| json);
        self.whole.iter().chain(oversize).map(Vec::as_slice)
    }

    /// Adds the rejects to a script's call. An earlier argument of the call tells how many of them
    /// are whole. `mark` names an item by its place.
    pub(super) fn push_to(&self, command: &mut Cmd, mark: impl Fn(usize) -> String) {
        command.arg(&self.whole);
        for (place, json) in &self.oversize {
            command.arg(mark(*place)).arg(json);
        }
    }
}

/// Commands that commit a batch.
#[derive(Debug)]
pub enum Commit {
    /// One script that checks everything, and then pushes.
    Script(Cmd),
    /// A plain push and a script, in one transaction. The script does the rest, or takes the push
    /// back.
    Transaction {
        /// The push, after probes that prove that taking it back is permitted.
        push: Vec<Packed>,
        /// Checks the push and does the rest.
        script: Cmd,
    },
}

impl Protocol {
    /// Builds the commands that commit a batch.
    pub fn commit(&self, order: Order<'_>) -> Commit {
        if let Some((judge, script)) = &self.shared {
            return Commit::Script(self.commit_shared(order, judge, script));
        }
        match (self.sink.plain(), &self.commit_small) {
            (Some(_), Some(script)) if self.has_acl_check && is_small(order.batch) => {
                Commit::Script(self.commit_pushing(order, script))
            }
            (Some(sink), _) => self.commit_pushed(order, sink),
            (None, _) => Commit::Script(self.commit_pushing(order, &self.commit)),
        }
    }

    /// Commits a batch whose items have been judged, by a plain push and a script.
    fn commit_pushed(&self, order: Order<'_>, plain: &dyn PlainSink) -> Commit {
        let Order { batch, rejects, rejects_max, .. } = order;
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
        // Sends the script as text: an unknown hash would only fail after the push.
        let command = eval(&self.commit, &self.own_keys(&[]));
        let mut script = self.begin_commit(order, command);
        script.arg(count).arg(last.unwrap_or_default()).arg(rejects_max).arg(rejects.whole.len());
        rejects.push_to(&mut script, |place| self.source.mark(batch.items(), place));
        Commit::Transaction { push, script }
    }

    /// Commits a batch by a script that pushes. The items are among its arguments.
    fn commit_pushing(&self, order: Order<'_>, script: &Script) -> Cmd {
        let Order { batch, rejects, rejects_max, .. } = order;
        let mut command = self.begin_commit(order, call(script, &self.own_keys(&[])));
        command.arg(rejects_max).arg(batch.onward_len()).arg(rejects.whole.len());
        self.push_items(order, &mut command);
        rejects.push_to(&mut command, |place| self.source.mark(batch.items(), place));
        command
    }

    /// Adds the items to emit, in the form that the sink's functions take.
    fn push_items(&self, order: Order<'_>, command: &mut Cmd) {
        for (item, score) in order.batch.onward().zip(order.batch.onward_scores()) {
            command.arg(&*self.sink.argument(item, score));
        }
    }

    /// Commits a batch to a filter in Redis. The call carries the items that may be unseen, and the
    /// places in the filter by which the script judges them.
    fn commit_shared(&self, order: Order<'_>, judge: &Judge, script: &Script) -> Cmd {
        let Order { batch, rejects, rejects_max, .. } = order;
        let Question { keys, places, extras } = judge.question(batch.onward_fingerprints());
        let mut command = self.begin_commit(order, call(script, &self.own_keys(&keys)));
        command.arg(rejects_max).arg(batch.onward_len()).arg(extras.len());
        command.arg(rejects.whole.len()).arg(places);
        self.push_items(order, &mut command);
        command.arg(extras);
        rejects.push_to(&mut command, |place| self.source.mark(batch.items(), place));
        command
    }

    /// Returns the most items that one commit may give Redis to judge; `None` if the daemon judges.
    pub(crate) fn most_judged(&self) -> Option<usize> {
        self.shared.as_ref().map(|(judge, _)| judge.most())
    }

    /// Lists the keys of a commit: first those that all commits share, then the filter's.
    fn own_keys<'a>(&'a self, filter: &'a [String]) -> Vec<&'a str> {
        let Keys { lease, state, sink, rejected, oversize, .. } = &self.keys;
        let claimed = self.source.claimed(&self.keys);
        let own: [&str; 6] = [lease, state, claimed, sink, rejected, oversize];
        own.into_iter().chain(filter.iter().map(String::as_str)).collect()
    }

    /// Adds the arguments that all commits share.
    fn begin_commit(&self, order: Order<'_>, mut command: Cmd) -> Cmd {
        let Order { token, batch, before, .. } = order;
        let (base, head) = (batch.base(), batch.head());
        command.arg(token.as_str()).arg(base.seq).arg(base.commit_id.to_string());
        command.arg(head.seq).arg(head.commit_id.to_string());
        command.arg(self.source.span(before, batch.items()).as_slice());
        command
    }

    /// Reads the reply to [`Protocol::commit`]. Of a transaction, the reply to its last command
    /// counts.
    pub(crate) fn committed(
        &self,
        reply: Value,
        is_transaction: bool,
    ) -> Result<Committed, ProtocolError> {
        let reply = match reply {
            Value::Array(mut replies) if is_transaction => replies.pop().unwrap_or(Value::Nil),
            other => other,
        };
        let mut answer = ScriptReply::new("commit", reply)?;
        answer.ok()?;
        Ok(Committed {
            sink: answer.count()?,
            rejected: answer.count()?,
            dropped: answer.count()?,
            unseen: self.shared.is_some().then(|| answer.count()).transpose()?,
        })
    }
}

/// Returns true if a script pushes the batch at less cost than a transaction.
fn is_small(batch: &Batch<Ready>) -> bool {
    batch.onward_len() <= SMALL_ITEMS
        && batch.onward().map(<[u8]>::len).sum::<usize>() <= SMALL_BYTES
}
