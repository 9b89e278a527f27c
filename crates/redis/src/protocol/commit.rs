//! Commands that commit a batch, the reply of Redis, and the sinks: Redis keys to which the daemon
//! pushes unseen items.
//!
//! A new kind of sink needs a word at [`SinkKind`], its lines below, and its lines in the scripts
//! `commit`, `pop`, `requeue` and `count`.

use std::borrow::Cow;

use redis::{Cmd, Value};
use urlseen_filter::RedisFilterKeys;
use urlseen_filter::choice::End;
use urlseen_filter::redis_kind::Question;
use urlseen_fingerprint::Fingerprint;
use urlseen_fingerprint::choices;
use urlseen_storage::Head;

use super::reply::{nonsense, values};
use super::{Committed, Cursor, Keys, Protocol, ProtocolError, Token};
use crate::packed::Packed;
use crate::preflight::{KeyOwner, Needs};

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
    for &(number, content) in &filter.keys {
        needs.key(KeyOwner::Setting("filter.key"), &filter.key(number), content.type_name());
    }
    let Some(&(first, _)) = filter.keys.first() else { return };
    for words in filter.script.commands {
        let [name, arguments @ ..] = words else { continue };
        let words = [*name, "$"].into_iter().chain(arguments.iter().copied());
        needs.commands(&[&filter.key(first)], &[&words.collect::<Vec<_>>().join(" ")]);
    }
}

choices! {
    /// Type of the Redis key that is the sink.
    SinkKind {
        /// Redis list, pushed to at one end.
        List = "list",
        /// Redis sorted set, like scrapy-redis's priority queue. The score of an item is its
        /// negative priority, so that the most urgent item comes first.
        Zset = "zset",
    }
}

/// Redis key to which the daemon pushes unseen items.
#[derive(Debug, Clone, Copy)]
pub struct Sink {
    /// Type of the Redis key that is the sink.
    pub kind: SinkKind,
    /// End of a list to push to.
    pub push_to: End,
}

impl Sink {
    /// Returns true if the sink orders items by their score. If not, the sink has two ends.
    pub fn is_scored(self) -> bool {
        self.kind == SinkKind::Zset
    }

    /// Returns the command that pushes.
    pub(super) fn command(self) -> &'static str {
        match (self.kind, self.push_to) {
            (SinkKind::List, End::Left) => "LPUSH",
            (SinkKind::List, End::Right) => "RPUSH",
            (SinkKind::Zset, _) => "ZADD",
        }
    }

    /// Returns the script argument that contains an item and its score.
    pub(super) fn argument(self, item: &[u8], score: f64) -> Cow<'_, [u8]> {
        match self.kind {
            SinkKind::List => Cow::Borrowed(item),
            SinkKind::Zset => {
                let mut argument = text(score).into_bytes();
                argument.reserve(1 + item.len());
                argument.push(b' ');
                argument.extend_from_slice(item);
                argument.into()
            }
        }
    }

    /// Returns plain commands that push items to the list `sink`. Redis pushes all of them or none.
    /// Before the push come commands that change nothing and have short replies: if the user lacks
    /// a permission that the commit needs to take the push back, Redis refuses the whole
    /// transaction.
    pub(super) fn push(self, sink: &str, items: &[(&[u8], f64)]) -> Vec<Packed> {
        // No list has an item at this index, so `LINDEX` returns nothing. `LTRIM` with these ends
        // removes nothing.
        let look = [b"LINDEX", sink.as_bytes(), b"9223372036854775807"];
        let trim = [b"LTRIM", sink.as_bytes(), b"0", b"-1"];
        let bytes = items.iter().map(|(item, _)| item.len()).sum();
        let mut push = Packed::new(2 + items.len(), bytes);
        push.word(self.command().as_bytes());
        push.word(sink.as_bytes());
        for (item, _) in items {
            push.word(item);
        }
        vec![look.into_iter().collect(), trim.into_iter().collect(), push]
    }

    /// Builds the command that returns the number of items in the sink.
    pub(super) fn length(self, sink: &str) -> Cmd {
        match self.kind {
            SinkKind::List => Cmd::llen(sink),
            SinkKind::Zset => Cmd::zcard(sink),
        }
    }

    /// Adds the Redis key and the commands of the sink to the needs of the crawl.
    pub(super) fn needs(self, keys: &Keys, needs: &mut Needs) {
        let sink = keys.sink.as_str();
        let owner = KeyOwner::Setting("sink.key");
        match self.kind {
            SinkKind::List => {
                needs.key(owner, sink, "list");
                let push = format!("{} $ 0", self.command());
                needs.commands(&[sink], &[&push, "LINDEX $ -1", "LTRIM $ 0 -1", "LLEN $"]);
            }
            SinkKind::Zset => {
                needs.key(owner, sink, "zset");
                needs.commands(&[sink], &["ZADD $ 0 0", "ZCARD $"]);
            }
        }
    }
}

/// Writes a score so that Redis reads back the same bits.
fn text(score: f64) -> String {
    /// A float represents all integers up to this number exactly.
    const WHOLE: f64 = (1_u64 << 53) as f64;
    if score.fract() == 0.0 && score.abs() <= WHOLE {
        format!("{score}")
    } else {
        format!("{score:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_short_and_exact() {
        for (score, expected) in [
            (0.0, "0"),
            (-5.0, "-5"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1.5, "1.5e0"),
            (1e300, "1e300"),
            (-5e-324, "-5e-324"),
            (0.1 + 0.2, "3.0000000000000004e-1"),
        ] {
            assert_eq!(text(score), expected);
            assert_eq!(text(score).parse(), Ok(score));
        }
    }

    #[test]
    fn an_argument_is_a_score_a_space_and_the_item_as_it_is() {
        let zset = Sink { kind: SinkKind::Zset, push_to: End::Right };
        assert_eq!(*zset.argument(b"a b\xff", -2.0), *b"-2 a b\xff");
        assert_eq!(*zset.argument(b"", 0.0), *b"0 ");
    }
}
