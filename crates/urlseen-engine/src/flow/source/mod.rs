//! Sources: where discovered items come from.
//!
//! A new source is one new file that implements [`Source`], with the Lua functions that the
//! scripts call on it, and one line in [`open`].

mod list;

use redis::Cmd;

use crate::config;
use crate::item::Items;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::Needs;

pub use list::List;

/// Something in Redis that items are claimed from.
///
/// What is claimed waits under a key of urlseen's own (`processing`) until its batch is committed.
/// The scripts that change it are told how by [`Source::lua_commit`] and [`Source::lua_give_back`].
pub trait Source: Send {
    /// Lua: `source_refusal(processing, length)` answers a refusal unless `processing` holds
    /// exactly this many items and may be trimmed; `source_remove(processing, count)` removes the
    /// first so many; `source_move_first(processing, list)` moves the first to the right end of
    /// another list.
    fn lua_commit(&self) -> String;

    /// Lua: `source_give_back_refusal(processing, source)` answers a refusal unless nothing that
    /// giving back does will fail; `source_give_back(processing, source, most)` returns what is not
    /// committed and answers how many items went back and how many are left.
    ///
    /// Apart from the above: Redis hashes a commit's text each time.
    fn lua_give_back(&self) -> String;

    /// Reads `count` claimed items behind the first `from`, in the order of taking.
    fn window(&self, processing: &str, from: u64, count: u64) -> Cmd;

    /// The items in the reply to [`Source::window`]; `None` if it is something else.
    fn items(&self, reply: Reply) -> Option<Items>;

    /// Changes nothing, and answers something other than nil as soon as the source holds an item,
    /// or nil after `seconds`.
    fn wait(&self, source: &str, seconds: f64) -> Cmd;

    /// How many items wait to be claimed.
    fn length(&self, source: &str) -> Cmd;

    /// Adds what all this needs of the server, beyond what the scripts themselves do.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// The source that the config names.
pub fn open(config: &config::Source) -> Box<dyn Source> {
    Box::new(List::new(config.take_from))
}
