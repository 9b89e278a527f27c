//! Sinks: where unseen items go.
//!
//! A new sink is one new file that implements [`Sink`], with the Lua functions that the commit
//! calls on it, and one line in [`open`].

mod list;
mod zset;

use std::borrow::Cow;

use redis::Cmd;

use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::packed::Packed;
use urlseen_core::redis::preflight::Needs;
use urlseen_engine::config::{self, SinkKind};

pub use list::ListSink;
pub(crate) use zset::Zset;

/// Something in Redis that unseen items are pushed to.
pub(crate) trait Sink: Send {
    /// How a plain command pushes, where that can be taken back.
    fn plain(&self) -> Option<&dyn PlainSink>;

    /// Lua, for scripts that push by themselves: `sink_push_refusal(sink)` answers a refusal unless
    /// they may; `sink_push(sink, items, from, to)` pushes some of `items`, each as
    /// [`Sink::argument`] has it; `sink_length(sink)` answers how many items wait there.
    fn lua_push(&self) -> String;

    /// How an item and its score are handed to such a script.
    fn argument<'a>(&self, item: &'a [u8], score: f64) -> Cow<'a, [u8]>;

    /// How many items wait in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds what all this needs of the server.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// A sink that a plain command pushes to, with a script behind it that can take the push back: what
/// a script hands on itself costs Redis several times as much.
pub(crate) trait PlainSink {
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

/// The sink that the config names.
pub(crate) fn open(config: &config::Sink) -> Box<dyn Sink> {
    match config.kind {
        SinkKind::List => Box::new(ListSink::new(config.push_to)),
        SinkKind::Zset => Box::new(Zset),
    }
}
