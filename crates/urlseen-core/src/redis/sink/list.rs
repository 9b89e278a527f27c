//! Redis list as a sink of items.

use std::borrow::Cow;

use redis::Cmd;

use super::Sink;
use crate::filter::choice::End;
use crate::redis::keys::Keys;
use crate::redis::packed::Packed;
use crate::redis::preflight::{CommandNeed, KeyOwner, Needs};

/// Redis list; the daemon pushes items to one end of it. A plain command pushes, and a script after
/// the command can undo the push. A push from within a script would cost Redis several times as
/// much as the command.
#[derive(Debug)]
pub struct ListSink {
    push_to: End,
}

impl ListSink {
    /// Creates a sink that pushes to the given end.
    pub(super) fn new(push_to: End) -> Self {
        Self { push_to }
    }

    fn command(&self) -> &'static str {
        match self.push_to {
            End::Left => "LPUSH",
            End::Right => "RPUSH",
        }
    }

    /// Returns the Lua functions for the script after [`ListSink::push`]. `sink_refusal(sink,
    /// last)` returns an error reply if `last` is not the item that was pushed last.
    /// `sink_take_back(sink, count)` undoes the push of `count` items. `sink_length(sink)` returns
    /// the number of items in the sink.
    pub fn lua(&self) -> String {
        format!("local PUSH = '{}'\n{}", self.command(), include_str!("list.lua"))
    }

    /// Returns commands that change nothing and have short replies. A transaction begins with these
    /// commands. If the user lacks a permission that [`ListSink::lua`] needs, Redis refuses the
    /// whole transaction.
    pub fn gate(&self, sink: &str) -> Vec<Packed> {
        // No list has an item at this index, so `LINDEX` returns nothing. `LTRIM` with these ends
        // removes nothing.
        let look = [b"LINDEX", sink.as_bytes(), b"9223372036854775807"];
        let trim = [b"LTRIM", sink.as_bytes(), b"0", b"-1"];
        vec![look.into_iter().collect(), trim.into_iter().collect()]
    }

    /// Builds the command that pushes `count` items of about `bytes` bytes. Redis pushes all of
    /// them or none.
    pub fn push(
        &self,
        sink: &str,
        count: usize,
        bytes: usize,
        items: &mut dyn Iterator<Item = &[u8]>,
    ) -> Packed {
        let mut push = Packed::new(2 + count, bytes);
        push.word(self.command().as_bytes());
        push.word(sink.as_bytes());
        items.for_each(|item| push.word(item));
        push
    }
}

impl Sink for ListSink {
    fn plain(&self) -> Option<&ListSink> {
        Some(self)
    }

    fn lua_push(&self) -> String {
        format!("local PUSH = '{}'\n{}", self.command(), include_str!("list_push.lua"))
    }

    fn argument<'a>(&self, item: &'a [u8], _: f64) -> Cow<'a, [u8]> {
        Cow::Borrowed(item)
    }

    fn is_scored(&self) -> bool {
        false
    }

    fn length(&self, sink: &str) -> Cmd {
        Cmd::llen(sink)
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let sink = keys.sink.as_str();
        needs.key(KeyOwner::Setting("sink.key"), sink, "list");
        needs.command(CommandNeed::new(self.command()).key(sink).arg(""));
        needs.commands(sink, &["LINDEX -1", "LTRIM 0 -1", "LLEN"]);
    }
}
