//! Sinks for unseen items.
//!
//! A new sink needs one new file that implements [`Sink`] and has the Lua functions for the commit.
//! The sink also needs its lines at [`SinkKind`].

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

/// Key in Redis that unseen items are pushed to.
pub trait Sink: Send {
    /// Returns the sink for pushes with a plain command. `None` if no script can undo a push with a
    /// plain command.
    fn plain(&self) -> Option<&dyn PlainSink>;

    /// Returns the Lua functions for scripts that push by themselves. `sink_push_refusal(sink)`
    /// returns a refusal unless the script may push. `sink_push(sink, items, from, to)` pushes some
    /// of `items`, each in the form of [`Sink::argument`]. `sink_length(sink)` returns the number
    /// of items in the sink.
    fn lua_push(&self) -> String;

    /// Returns the argument that passes an item and its score to a script with [`Sink::lua_push`].
    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]>;

    /// Returns true if the sink orders items by their score. If not, the sink has two ends.
    fn is_scored(&self) -> bool;

    /// Builds the command for the number of items in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds the needs of these commands to the needs of the crawl.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// Sink that a plain command pushes to, followed by a script that can undo the push. A push from
/// within a script costs Redis several times as much.
pub trait PlainSink {
    /// Returns the Lua functions for the script after [`PlainSink::push`]. `sink_refusal(sink,
    /// last)` returns a refusal unless `last` is the last item pushed. `sink_take_back(sink,
    /// count)` undoes the push of `count` items. `sink_length(sink)` returns the number of items in
    /// the sink.
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
    /// Kind of a sink: a file beside this one, its word here, and its line in [`SinkKind::open`].
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
