//! Sources: where discovered items come from.
//!
//! A new source is one new file that implements [`Source`], with the Lua functions that the
//! scripts call on it, and one line in [`open`].

mod list;
mod stream;

use redis::{Cmd, Value};

use crate::config::{self, SourceKind};
use crate::item::{Items, Unreadable};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::Needs;

pub use list::List;
use stream::Stream;

/// A place in a source: all items before it are read, or committed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The place, as the source counts.
    pub place: u128,
    /// Number of items that are known to come after it.
    pub left: u64,
}

/// Why the reply to [`Source::read`] has no items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// It is the reply to something else.
    Unexpected,
    /// Another program changed the source. The text describes the change for people.
    Changed(String),
}

/// Something in Redis that items are read from.
///
/// An item stays until its batch is committed. The commit's script checks that the source is where
/// the batch was read, and moves it on, in the same step that pushes what is unseen.
pub trait Source: Send {
    /// The command that producers push an item with.
    fn push(&self) -> &'static str;

    /// The key that the items of a batch stand in until they are committed.
    fn claimed<'a>(&self, keys: &'a Keys) -> &'a str;

    /// Lua, for the scripts around a run. They pass `keys`: the source, the processing list, and
    /// the name that it had in earlier versions. A function that may refuse answers the refusal
    /// first.
    ///
    /// - `source_own_refusal(keys)` refuses keys that a run cannot begin with.
    /// - `source_place(state, keys)` answers the place of the last commit, and how many items are
    ///   claimed after it.
    /// - `source_claim(state, keys)` answers a refusal or nil, the place of the last commit, how
    ///   many items may be read after it now, and how many it newly finds to have gone unread.
    /// - `source_give_back_refusal(keys)` refuses unless nothing that giving back does will fail.
    /// - `source_give_back(keys, most)` returns what is claimed, unless that moves more than
    ///   `most` items; answers how many items went back and how many are left.
    /// - `source_waiting(state, keys)` answers how many items wait to be claimed.
    fn lua_session(&self) -> String;

    /// Lua, for the scripts of a commit. `claimed` is the key of [`Source::claimed`].
    ///
    /// - `source_refusal(claimed, state, before, span, oversize, rejects)` refuses unless the last
    ///   commit ended at `before`, and the batch may be removed. So many of its items are rejected.
    /// - `source_commit(claimed, state, span, oversize, first)` removes the batch. The arguments
    ///   from `first` on are pairs of [`Source::mark`] and reject: the item moves to the right end
    ///   of `oversize`, after its reject.
    ///
    /// Apart from the above: Redis hashes a commit's text each time.
    fn lua_commit(&self) -> String;

    /// Lua, for rejects that go through once more.
    ///
    /// - `source_push_refusal(source, oversize)` refuses unless items may be pushed, those of
    ///   another list too.
    /// - `source_push(source, first, last)` pushes the arguments from `first` to `last`, to be
    ///   taken after all that waits.
    /// - `source_push_from(source, oversize)` does so with the first item of another list.
    fn lua_requeue(&self) -> String;

    /// The place that the Lua functions call so.
    fn place(&self, text: &str) -> Option<u128>;

    /// Reads `count` items after a cursor, in the order of taking. The cursor after them, where it
    /// is known before they are read: then more may be read at once.
    fn read(&self, keys: &Keys, after: Cursor, count: u64) -> (Cmd, Option<Cursor>);

    /// The items in the reply to [`Source::read`].
    fn items(&self, reply: Reply, after: Cursor, count: u64) -> Result<Items, ReadError>;

    /// The cursor after these items.
    fn end(&self, items: &Items) -> Cursor;

    /// The arguments `before` and `span` of the Lua functions for a batch that was read at a
    /// cursor.
    fn span(&self, before: Cursor, items: &Items) -> [String; 2];

    /// Names an item of a batch to `source_commit`.
    fn mark(&self, items: &Items, index: usize) -> String;

    /// Why an item of a batch cannot be read, for people.
    fn explain(&self, reason: &Unreadable, items: &Items, index: usize) -> String;

    /// Changes nothing, and answers something other than nil as soon as there is an item after the
    /// cursor, or nil after `seconds`.
    fn wait(&self, keys: &Keys, after: Cursor, seconds: f64) -> Cmd;

    /// Returns true if a claim may find an item after this reply to [`Source::wait`].
    fn wakes(&self, reply: &Value) -> bool;

    /// Asks for the number of items that wait to be claimed, or that stay in place until their
    /// commit.
    fn waiting(&self, keys: &Keys) -> Cmd;

    /// Returns the number of items that wait to be claimed, by that answer and the number of
    /// claimed ones.
    fn unclaimed(&self, waiting: u64, claimed: u64) -> u64;

    /// Adds what all this needs of the server, beyond what the scripts themselves do.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// The source that the config names.
pub fn open(config: &config::Source) -> Box<dyn Source> {
    match config.kind {
        SourceKind::List | SourceKind::None => Box::new(List::new(config.take_from)),
        SourceKind::Stream => Box::new(Stream::new(&config.field, config.after_commit)),
    }
}
