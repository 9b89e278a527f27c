//! Sinks: Redis keys to which the daemon pushes unseen items.
//!
//! A new kind of sink needs a file that implements [`Sink`], Lua functions for the commit script,
//! and its lines at [`SinkKind`].

mod list;
mod zset;

use std::borrow::Cow;

use redis::Cmd;

use crate::redis::keys::Keys;
use crate::redis::packed::Packed;
use crate::redis::preflight::Needs;

use crate::filter::choice::{Choice, ChoiceError, End, choices, choose};
use list::ListSink;
use zset::Zset;

/// Redis key to which the daemon pushes unseen items.
pub trait Sink: Send {
    /// Returns the sink as a [`PlainSink`], to which a plain command pushes. Returns `None` if no
    /// script could undo such a push.
    fn plain(&self) -> Option<&dyn PlainSink>;

    /// Returns the Lua functions for scripts that push items themselves. `sink_push_refusal(sink)`
    /// returns an error reply if the user must not push to the sink. `sink_push(sink, items, from,
    /// to)` pushes `items[from]` to `items[to]`, each in the form of [`Sink::argument`].
    /// `sink_length(sink)` returns the number of items in the sink.
    fn lua_push(&self) -> String;

    /// Returns the script argument that contains an item and its score, for a script with
    /// [`Sink::lua_push`].
    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]>;

    /// Returns true if the sink orders items by their score. If not, the sink has two ends.
    fn is_scored(&self) -> bool;

    /// Builds the command that returns the number of items in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds the Redis key and the commands of the sink to the needs of the crawl.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// Sink to which a plain command pushes. A script after the command can undo the push. A push from
/// within a script would cost Redis several times as much as the command.
pub trait PlainSink {
    /// Returns the Lua functions for the script after [`PlainSink::push`]. `sink_refusal(sink,
    /// last)` returns an error reply if `last` is not the item that was pushed last.
    /// `sink_take_back(sink, count)` undoes the push of `count` items. `sink_length(sink)` returns
    /// the number of items in the sink.
    fn lua(&self) -> String;

    /// Returns commands that change nothing and have short replies. A transaction begins with these
    /// commands. If the user lacks a permission that [`PlainSink::lua`] needs, Redis refuses the
    /// whole transaction.
    fn gate(&self, sink: &str) -> Vec<Packed>;

    /// Builds the command that pushes `count` items of about `bytes` bytes. Redis pushes all of
    /// them or none.
    fn push(
        &self,
        sink: &str,
        count: usize,
        bytes: usize,
        items: &mut dyn Iterator<Item = &[u8]>,
    ) -> Packed;
}

choices! {
    /// Kind of a sink. Each kind has a file beside this one, a word here, and a line in
    /// [`SinkKind::open`].
    SinkKind {
        /// Redis list, pushed to at one end.
        List = "list",
        /// Redis sorted set, like scrapy-redis's priority queue.
        Zset = "zset",
    } later []
}

impl SinkKind {
    /// Opens a sink of this kind. `push_to` is the end of a list to push to.
    pub fn open(self, push_to: End) -> Box<dyn Sink> {
        match self {
            Self::List => Box::new(ListSink::new(push_to)),
            Self::Zset => Box::new(Zset),
        }
    }
}
