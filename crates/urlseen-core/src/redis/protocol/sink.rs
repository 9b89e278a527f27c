//! Sinks: Redis keys to which the daemon pushes unseen items.
//!
//! A new kind of sink needs a word at [`SinkKind`], its lines below, and its lines in the scripts
//! `commit`, `pop`, `requeue` and `count`.

use std::borrow::Cow;

use redis::Cmd;

use super::Keys;
use crate::filter::choice::{End, choices};
use crate::redis::packed::Packed;
use crate::redis::preflight::{CommandNeed, KeyOwner, Needs};

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
    kind: SinkKind,
    push_to: End,
}

impl Sink {
    /// Creates a sink of this kind. `push_to` is the end of a list to push to.
    pub fn new(kind: SinkKind, push_to: End) -> Self {
        Self { kind, push_to }
    }

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
                needs.command(CommandNeed::new(self.command()).key(sink).arg(""));
                needs.commands(sink, &["LINDEX -1", "LTRIM 0 -1", "LLEN"]);
            }
            SinkKind::Zset => {
                needs.key(owner, sink, "zset");
                needs.commands(sink, &["ZADD 0 0", "ZCARD"]);
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
        let zset = Sink::new(SinkKind::Zset, End::Right);
        assert_eq!(*zset.argument(b"a b\xff", -2.0), *b"-2 a b\xff");
        assert_eq!(*zset.argument(b"", 0.0), *b"0 ");
    }
}
