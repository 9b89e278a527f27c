//! The commit of a batch.

use redis::{Cmd, Value};

use super::reply::ScriptReply;
use super::{Committed, Protocol, ProtocolError, Script, call, eval};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::packed::Packed;
use urlseen_core::redis::sink::PlainSink;
use urlseen_core::redis_filter::judge::{Judge, Question};
use urlseen_engine::flow::source::Cursor;
use urlseen_engine::item::batch::{Batch, Ready};

/// What is to be committed, and as what.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// By whom.
    pub token: &'a Token,
    /// The batch.
    pub batch: &'a Batch<Ready>,
    /// Its rejects.
    pub rejects: &'a Rejects,
    /// Where it was read in the source.
    pub before: Cursor,
    /// How long the list of rejects may become before the oldest are dropped; 0: without end.
    pub rejects_max: u64,
}

/// Most items that a script pushes to a list. Beyond that, handing items to Lua and back costs
/// Redis more than the transaction around a plain push.
const SMALL_ITEMS: usize = 64;

/// Most bytes of such a batch.
const SMALL_BYTES: usize = 64 << 10;

/// Rejects of a batch, as JSON.
#[derive(Debug, Default, Clone)]
pub struct Rejects {
    /// Those that hold their items.
    pub(crate) whole: Vec<Vec<u8>>,
    /// Places of the items that are too large for that, ascending, and their rejects.
    pub(crate) oversize: Vec<(usize, Vec<u8>)>,
}

impl Rejects {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.whole.len() + self.oversize.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The JSON of all.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let oversize = self.oversize.iter().map(|(_, json)| json);
        self.whole.iter().chain(oversize).map(Vec::as_slice)
    }

    /// Adds them to a script's call, which says before how many of them are whole. `mark` names an
    /// item by its place.
    pub(super) fn push_to(&self, command: &mut Cmd, mark: impl Fn(usize) -> String) {
        command.arg(&self.whole);
        for (place, json) in &self.oversize {
            command.arg(mark(*place)).arg(json);
        }
    }
}

/// The commands that commit a batch.
#[derive(Debug)]
pub enum Commit {
    /// One script that pushes after all of its checks.
    Script(Cmd),
    /// A plain push and, in the same transaction, a script that does the rest or takes the push
    /// back.
    Transaction {
        /// The push, after probes that prove that taking it back is permitted.
        push: Vec<Packed>,
        /// Checks and does the rest.
        script: Cmd,
    },
}

impl Protocol {
    /// The commands that commit a batch.
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

    /// The commit of a batch whose items have been judged.
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
        // As text: that a server has forgotten it would be found out only behind the push.
        let command = eval(&self.commit, &self.own_keys(&[]));
        let mut script = self.begin_commit(order, command);
        script.arg(count).arg(last.unwrap_or_default()).arg(rejects_max).arg(rejects.whole.len());
        rejects.push_to(&mut script, |place| self.source.mark(batch.items(), place));
        Commit::Transaction { push, script }
    }

    /// The commit by a script that pushes: the items are among its arguments.
    fn commit_pushing(&self, order: Order<'_>, script: &Script) -> Cmd {
        let Order { batch, rejects, rejects_max, .. } = order;
        let mut command = self.begin_commit(order, call(script, &self.own_keys(&[])));
        command.arg(rejects_max).arg(batch.onward_len()).arg(rejects.whole.len());
        self.push_items(order, &mut command);
        rejects.push_to(&mut command, |place| self.source.mark(batch.items(), place));
        command
    }

    /// The items that go on, as the sink's functions take them.
    fn push_items(&self, order: Order<'_>, command: &mut Cmd) {
        for (item, score) in order.batch.onward().zip(order.batch.onward_scores()) {
            command.arg(&*self.sink.argument(item, score));
        }
    }

    /// The commit to a filter that is in Redis: the items that may be unseen go along with what the
    /// script judges them by.
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

    /// How many items one commit may hand to Redis to be judged; `None` where none are.
    pub(crate) fn most_judged(&self) -> Option<usize> {
        self.shared.as_ref().map(|(judge, _)| judge.most())
    }

    /// The keys that both kinds of commits begin with, and then the filter's.
    fn own_keys<'a>(&'a self, filter: &'a [String]) -> Vec<&'a str> {
        let Keys { lease, state, sink, rejected, oversize, .. } = &self.keys;
        let claimed = self.source.claimed(&self.keys);
        let own: [&str; 6] = [lease, state, claimed, sink, rejected, oversize];
        own.into_iter().chain(filter.iter().map(String::as_str)).collect()
    }

    /// What both kinds of commits begin with.
    fn begin_commit(&self, order: Order<'_>, mut command: Cmd) -> Cmd {
        let Order { token, batch, before, .. } = order;
        let (base, head) = (batch.base(), batch.head());
        command.arg(token.as_str()).arg(base.seq).arg(base.commit_id.to_string());
        command.arg(head.seq).arg(head.commit_id.to_string());
        command.arg(self.source.span(before, batch.items()).as_slice());
        command
    }

    /// The reply to [`Protocol::commit`]: of a transaction, the reply to its last command counts.
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

/// Whether a script pushes what goes on at less cost than a transaction does.
fn is_small(batch: &Batch<Ready>) -> bool {
    batch.onward_len() <= SMALL_ITEMS
        && batch.onward().map(<[u8]>::len).sum::<usize>() <= SMALL_BYTES
}
