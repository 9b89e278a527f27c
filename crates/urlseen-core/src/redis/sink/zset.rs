//! Redis sorted set as a sink, in the form of scrapy-redis's priority queue.

use std::borrow::Cow;

use redis::Cmd;

use super::Sink;
use crate::redis::keys::Keys;
use crate::redis::preflight::{KeyOwner, Needs};

/// Sorted set in which the score of an item is its negative priority, so that the most urgent item
/// comes first.
#[derive(Debug)]
pub struct Zset;

impl Sink for Zset {
    /// Returns `None`. A push can overwrite the score that an item had before, so no script can
    /// undo the push.
    fn lua_push(&self) -> String {
        include_str!("zset.lua").to_owned()
    }

    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]> {
        let mut argument = text(score).into_bytes();
        argument.reserve(1 + item.len());
        argument.push(b' ');
        argument.extend_from_slice(item);
        argument.into()
    }

    fn is_scored(&self) -> bool {
        true
    }

    fn length(&self, sink: &str) -> Cmd {
        Cmd::zcard(sink)
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let sink = keys.sink.as_str();
        needs.key(KeyOwner::Setting("sink.key"), sink, "zset");
        needs.commands(sink, &["ZADD 0 0", "ZCARD"]);
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
        assert_eq!(*Zset.argument(b"a b\xff", -2.0), *b"-2 a b\xff");
        assert_eq!(*Zset.argument(b"", 0.0), *b"0 ");
    }
}
