//! Redis list as a sink of items.

use std::borrow::Cow;

use redis::{Cmd, cmd};

use super::{PlainSink, Sink};
use crate::filter::choice::End;
use crate::redis::keys::Keys;
use crate::redis::packed::Packed;
use crate::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// Redis list; the daemon pushes items to one end of it.
#[derive(Debug)]
pub struct ListSink {
    push_to: End,
}

impl ListSink {
    /// Creates a sink that pushes to the given end.
    pub fn new(push_to: End) -> Self {
        Self { push_to }
    }

    fn command(&self) -> &'static str {
        match self.push_to {
            End::Left => "LPUSH",
            End::Right => "RPUSH",
        }
    }
}

impl Sink for ListSink {
    fn plain(&self) -> Option<&dyn PlainSink> {
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
        let mut command = cmd("LLEN");
        command.arg(sink);
        command
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let sink = keys.sink.as_str();
        needs.key(KeyOwner::Setting("sink.key"), sink, KeyKind::List);
        needs.command(CommandNeed::new(self.command()).key(sink).arg(""));
        needs.commands(sink, &["LINDEX -1", "LTRIM 0 -1", "LLEN"]);
    }
}

impl PlainSink for ListSink {
    fn lua(&self) -> String {
        format!("local PUSH = '{}'\n{}", self.command(), include_str!("list.lua"))
    }

    fn gate(&self, sink: &str) -> Vec<Packed> {
        // No list has an item at this index, so `LINDEX` returns nothing. `LTRIM` with these ends
        // removes nothing.
        let look = [b"LINDEX", sink.as_bytes(), b"9223372036854775807"];
        let trim = [b"LTRIM", sink.as_bytes(), b"0", b"-1"];
        vec![look.into_iter().collect(), trim.into_iter().collect()]
    }

    fn push(
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
