//! Sinks: where unseen items go.
//!
//! A new sink is one new file that implements [`Sink`], with the Lua functions that the commit
//! calls on it, and its lines at [`SinkKind`].

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

/// Something in Redis that unseen items are pushed to.
pub trait Sink: Send {
    /// How a plain command pushes, where that can be taken back.
    fn plain(&self) -> Option<&dyn PlainSink>;

    /// Lua, for scripts that push by themselves: `sink_push_refusal(sink)` answers a refusal unless
    /// they may; `sink_push(sink, items, from, to)` pushes some of `items`, each as
    /// [`Sink::argument`] has it; `sink_length(sink)` answers how many items wait there.
    fn lua_push(&self) -> String;

    /// How an item and its score are handed to such a script.
    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]>;

    /// Returns true if `push_to` means something for it.
    fn has_ends(&self) -> bool;

    /// Returns true if it orders items by their score.
    fn is_scored(&self) -> bool;

    /// How many items wait in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds what all this needs of the server.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// A sink that a plain command pushes to, with a script behind it that can take the push back: what
/// a script hands on itself costs Redis several times as much.
pub trait PlainSink {
    /// Lua, in the transaction after [`PlainSink::push`]: `sink_refusal(sink, last)` gives a
    /// refusal unless that has pushed `last` as its last item; `sink_take_back(sink, count)` undoes
    /// the push of so many items; `sink_length(sink)` answers how many items wait there.
    fn lua(&self) -> String;

    /// Commands that change nothing and answer little. A transaction begins with them, so that a
    /// server whose user has lost what [`PlainSink::lua`] takes finds that out before it carries
    /// anything out.
    fn gate(&self, sink: &str) -> Vec<Packed>;

    /// Pushes `count` items of about so many bytes: all of them, or none.
    fn push(
        &self,
        sink: &str,
        count: usize,
        bytes: usize,
        items: &mut dyn Iterator<Item = &[u8]>,
    ) -> Packed;
}

choices! {
    /// Kind of a sink: a file beside this one, with its word here and its line in
    /// [`SinkKind::open`].
    SinkKind {
        /// A Redis list.
        List = "list",
        /// A Redis sorted set, as scrapy-redis's priority queue.
        Zset = "zset",
    } later []
}

impl SinkKind {
    /// Opens a sink of this kind, which is pushed to at the end `push_to` if it has ends.
    pub fn open(self, push_to: End) -> Box<dyn Sink> {
        match self {
            Self::List => Box::new(ListSink::new(push_to)),
            Self::Zset => Box::new(Zset),
        }
    }
}
