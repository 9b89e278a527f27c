//! Sinks: where unseen items go.
//!
//! A new sink is one new file that implements [`Sink`], with the Lua functions that the commit
//! calls on it, and one line in [`open`].

mod list;

use redis::Cmd;

use crate::config;
use crate::redis::keys::Keys;
use crate::redis::preflight::Needs;

pub use list::List;

/// Something in Redis that unseen items are pushed to.
pub trait Sink: Send {
    /// Lua: `sink_refusal(sink)` answers a refusal unless all that is pushed will go in;
    /// `sink_push(sink, first, last)` pushes those arguments of the script; `sink_length(sink)`
    /// answers how many items wait there.
    fn lua(&self) -> String;

    /// How many items wait in the sink.
    fn length(&self, sink: &str) -> Cmd;

    /// Adds what all this needs of the server.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// The sink that the config names.
pub fn open(config: &config::Sink) -> Box<dyn Sink> {
    Box::new(List::new(config.push_to))
}
