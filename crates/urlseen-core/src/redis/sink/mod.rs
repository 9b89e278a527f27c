//! Sinks: Redis keys to which the daemon pushes unseen items.
//!
//! A new kind of sink needs a file that implements [`Sink`], Lua functions for the commit script,
//! and its lines at [`SinkKind`].

mod list;
mod zset;

use std::borrow::Cow;

use redis::Cmd;

use crate::redis::keys::Keys;
use crate::redis::preflight::Needs;

use crate::filter::choice::{Choice, ChoiceError, End, choices, choose};
pub use list::ListSink;
use zset::Zset;

/// Redis key to which the daemon pushes unseen items.
pub trait Sink: Send {
    /// Returns the sink as a [`ListSink`], to which a plain command pushes. Returns `None` if no
    /// script could undo such a push.
    fn plain(&self) -> Option<&ListSink> {
        None
    }

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
