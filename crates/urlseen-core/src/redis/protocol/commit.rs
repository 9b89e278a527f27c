//! Commands that commit a batch, and the reply of Redis.

use redis::{Cmd, Value};

use super::reply::{nonsense, values};
use super::{Committed, Cursor, Keys, Protocol, ProtocolError, Token};
use crate::filter::RedisFilterKeys;
use crate::filter::redis_kind::Question;
use crate::fingerprint::Fingerprint;
use crate::redis::packed::Packed;
use crate::redis::preflight::{CommandNeed, KeyOwner, Needs};
use crate::storage::Head;

/// Arguments of a commit.
#[derive(Debug)]
pub struct Order<'a> {
    /// Token of the lease under which the daemon commits.
    pub token: &'a Token,
    /// Head before the commit.
    pub base: Head,
    /// Head after the commit.
    pub head: Head,
    /// Cursor before the first item of the batch.
    pub before: Cursor,
    /// Number of items of the batch.
    pub count: usize,
    /// Items for the sink, and their scores. With a filter in Redis, Redis tests these items during
    /// the commit.
    pub onward: &'a [(&'a [u8], f64)],
    /// Question to a filter in Redis about these items: see [`Protocol::question`].
    pub question: Question,
    /// Rejects for those items of the batch that the daemon could not read.
    pub rejects: &'a [Vec<u8>],
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
    pub fn commit(&self, order: &Order<'_>) -> Commit {
        let Order { token, base, head, before, count, onward, question, .. } = order;
        let Keys { lease, state, processing, sink, rejected, .. } = &self.keys;
        let own: [&str; 5] = [lease, state, processing, sink, rejected];
        let filter = question.keys.iter().map(String::as_str);
        let keys: Vec<_> = own.into_iter().chain(filter).collect();
        // A push to a sorted set may overwrite a score, so no script can take it back.
        let is_pushed = self.filter.is_none()
            && !self.sink.is_scored()
            && !(self.has_acl_check && is_small(onward));
        let (pushed, given) = if is_pushed { (*onward, &[][..]) } else { (&[][..], *onward) };
        // After a push, the script is sent as text. If its hash were sent, and Redis did not know
        // it, the script would fail after the push.
        let mut script = if is_pushed {
            let mut script = self.eval("commit", &keys);
            script.arg(token.as_str());
            script
        } else {
            self.call("commit", &keys, token)
        };
        for head in [base, head] {
            script.arg(head.seq).arg(head.commit_id.to_string());
        }
        script.arg(before).arg(count).arg(self.source.take_from()).arg(order.rejects_max);
        script.arg(self.sink.command());
        script.arg(pushed.len()).arg(pushed.last().map_or(&[][..], |(last, _)| last));
        script.arg(given.len()).arg(question.extras.len()).arg(&question.places);
        for (item, score) in given {
            script.arg(&*self.sink.argument(item, *score));
        }
        script.arg(&question.extras).arg(order.rejects);
        if !is_pushed {
            return Commit::Script(script);
        }
        let push = if pushed.is_empty() { Vec::new() } else { self.sink.push(sink, pushed) };
        Commit::Transaction { push, script }
    }

    /// Asks the filter in Redis about the items for the sink. The question is empty if the daemon
    /// has the filter.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        self.filter.as_ref().map(|filter| filter.question(fingerprints)).unwrap_or_default()
    }

    /// Returns the maximum number of items that Redis may test in one commit. Returns `None` if the
    /// daemon tests the items.
    pub fn most_judged(&self) -> Option<usize> {
        self.filter.as_ref().map(|filter| filter.most_judged())
    }

    /// Reads the reply to [`Protocol::commit`]. The result of a transaction is the reply to its
    /// last command.
    pub fn committed(
        &self,
        reply: Value,
        is_transaction: bool,
    ) -> Result<Committed, ProtocolError> {
        let reply = match reply {
            Value::Array(mut replies) if is_transaction => replies.pop().unwrap_or(Value::Nil),
            other => other,
        };
        let counts: Vec<u64> = values("commit", reply)?;
        let [sink, rejected, dropped, ref unseen @ ..] = counts[..] else {
            return Err(nonsense("commit", &counts));
        };
        Ok(Committed { sink, rejected, dropped, unseen: unseen.first().copied() })
    }
}

/// Returns true if a script can push the items at less cost than a transaction.
fn is_small(onward: &[(&[u8], f64)]) -> bool {
    onward.len() <= SMALL_ITEMS
        && onward.iter().map(|(item, _)| item.len()).sum::<usize>() <= SMALL_BYTES
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
