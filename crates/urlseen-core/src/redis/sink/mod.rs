//! Sinks for unseen items.
//!
//! A new sink needs one new file that implements [`Sink`] and has the Lua functions that the commit
//! calls. It also needs its lines at [`SinkKind`].

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

/// Place in Redis that unseen items are pushed to.
pub trait Sink: Send {
    /// Sink for pushes by a plain command, if a script can undo such a push.
    fn plain(&self) -> Option<&dyn PlainSink>;

    /// Lua for scripts that push by themselves. `sink_push_refusal(sink)` returns a refusal unless
    /// the script may push. `sink_push(sink, items, from, to)` pushes some of `items`, each in the
    /// form of [`Sink::argument`]. `sink_length(sink)` returns the number of items in the sink.
    fn lua_push(&self) -> String;

    /// Form in which such a script gets an item and its score.
    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]>;

    /// Returns true if `push_to` has a meaning for the sink.
    fn has_ends(&self) -> bool;

    /// Returns true if the sink orders items by their score.
    fn is_scored(&self) -> bool;

    /// Command for the number of items in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds the needs of these commands to the needs of the crawl.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// Sink that a plain command pushes to, followed by a script that can undo the push. A push from
/// within a script costs Redis several times as much.
pub trait PlainSink {
    /// Lua for the transaction after [`PlainSink::push`]. `sink_refusal(sink, last)` returns a
    /// refusal unless `last` is the last item pushed. `sink_take_back(sink, count)` undoes the push
    /// of `count` items. `sink_length(sink)` returns the number of items in the sink.
    fn lua(&self) -> String;

    /// Commands that change nothing and have short replies. A transaction begins with them. If the
    /// user has lost a permission that [`PlainSink::lua`] needs, Redis then refuses the transaction
    /// before any of it runs.
    fn gate(&self, sink: &str) -> Vec<Packed>;

    /// Pushes `count` items of about `bytes` bytes: all of them, or none.
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
    /// Opens a sink of this kind. `push_to` is its end, if it has ends.
    pub fn open(self, push_to: End) -> Box<dyn Sink> {
        match self {
            Self::List => Box::new(ListSink::new(push_to)),
            Self::Zset => Box::new(Zset),
        }
    }
}
