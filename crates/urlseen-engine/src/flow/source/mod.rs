//! Sources: keys in Redis from which a crawl takes discovered items.
//!
//! To add a source, write one new file that implements [`Source`], with the Lua functions that the
//! scripts call, and add one line to [`open`].

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

/// A place between two items of a source: the end of the items that were read, or the end of the
/// items that were committed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The place, as a number whose meaning depends on the source.
    pub place: u128,
    /// Number of items that are known to follow the place.
    pub left: u64,
}

/// Reason that a reply to [`Source::read`] gives no items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The reply does not have the form of a reply to this command.
    Unexpected,
    /// Another program changed the source. The text describes the change for people.
    Changed(String),
}

/// A key in Redis from which items are read.
///
/// An item stays in Redis until its batch is committed. The script of the commit checks that the
/// source is at the cursor at which the batch was read. The same script pushes the unseen items and
/// moves the source to the cursor after the batch.
pub trait Source: Send {
    /// Returns the command with which producers push an item.
    fn push(&self) -> &'static str;

    /// Returns the key that holds the items of a batch until their commit.
    fn claimed<'a>(&self, keys: &'a Keys) -> &'a str;

    /// Returns Lua functions for the scripts that claim items and give them back. `keys` are the
    /// source, the processing list, and the name of the processing list in earlier versions. A
    /// function that can refuse returns the refusal as its first value.
    ///
    /// - `source_own_refusal(keys)` returns a refusal if a run cannot start with these keys.
    /// - `source_place(state, keys)` returns the place of the last commit, and the number of
    ///   claimed items after it.
    /// - `source_claim(state, keys, most, more)` claims the waiting items. If `most` is not 0, it
    ///   moves at most that many items to another key. While items are claimed, it claims only
    ///   `more` items, behind those. It returns a refusal or nil, the place of the last
    ///   commit, and the number of items that may be read after that place. The last value is the
    ///   number of lost items: other programs deleted them before they were read, and no earlier
    ///   claim has counted them.
    /// - `source_give_back_refusal(keys)` returns a refusal if a step of `source_give_back` could
    ///   fail.
    /// - `source_give_back(keys, most)` gives the claimed items back, unless more than `most` items
    ///   would have to be moved. It returns the number of items that it gave back and the number of
    ///   items that are still claimed.
    /// - `source_waiting(state, keys)` returns the number of items that wait to be claimed.
    fn lua_session(&self) -> String;

    /// Returns Lua functions for the scripts of a commit. `claimed` is the key of
    /// [`Source::claimed`].
    ///
    /// - `source_refusal(claimed, state, before, span, oversize, rejects)` returns a refusal if the
    ///   last commit did not end at `before`, or if the batch cannot be removed. `rejects` is the
    ///   number of its items that are rejected.
    /// - `source_commit(claimed, state, span, oversize, first)` removes the batch. Beginning with
    ///   the argument `first`, the arguments are pairs of a [`Source::mark`] and a reject. The
    ///   function pushes the reject, and then the marked item, to the right end of `oversize`.
    ///
    /// To keep this text short, the functions of [`Source::lua_session`] are not part of it: Redis
    /// hashes the text of a commit each time.
    fn lua_commit(&self) -> String;

    /// Returns Lua functions that push rejects to the source again.
    ///
    /// - `source_push_refusal(source, oversize)` returns a refusal if items cannot be pushed. If
    ///   `oversize` is given, also checks that items of that list can be pushed.
    /// - `source_push(source, first, last)` pushes the arguments from `first` to `last`. They are
    ///   taken after all waiting items.
    /// - `source_push_from(source, oversize)` removes the first item of the list `oversize` and
    ///   pushes that item.
    fn lua_requeue(&self) -> String;

    /// Parses a place as the Lua functions write it.
    fn place(&self, text: &str) -> Option<u128>;

    /// Builds the command that reads `count` items after a cursor, in the order in which the crawl
    /// takes them. Also returns the cursor after these items, if that cursor is known before the
    /// read. Then the next read need not wait for the reply.
    fn read(&self, keys: &Keys, after: Cursor, count: u64) -> (Cmd, Option<Cursor>);

    /// Returns the items in the reply to [`Source::read`].
    fn items(&self, reply: Reply, after: Cursor, count: u64) -> Result<Items, ReadError>;

    /// Returns the cursor after these items.
    fn end(&self, items: &Items) -> Cursor;

    /// Returns the arguments `before` and `span` of the Lua functions, for a batch that was read
    /// after the cursor `before`.
    fn span(&self, before: Cursor, items: &Items) -> [String; 2];

    /// Returns the text that identifies an item of a batch in the arguments of `source_commit`.
    fn mark(&self, items: &Items, index: usize) -> String;

    /// Explains to people why an item of a batch cannot be read.
    fn explain(&self, reason: &Unreadable, items: &Items, index: usize) -> String;

    /// Builds a command that waits for an item after the cursor and changes nothing. Its reply is
    /// nil if no item comes within `seconds`.
    fn wait(&self, keys: &Keys, after: Cursor, seconds: f64) -> Cmd;

    /// Returns true if a claim may find an item after this reply to [`Source::wait`].
    fn wakes(&self, reply: &Value) -> bool;

    /// Builds a command that asks for the number of items that are not claimed. A source that keeps
    /// items in place until their commit also counts the claimed ones.
    fn waiting(&self, keys: &Keys) -> Cmd;

    /// Returns the number of items that wait to be claimed. `waiting` is the reply to
    /// [`Source::waiting`], and `claimed` the number of claimed items.
    fn unclaimed(&self, waiting: u64, claimed: u64) -> u64;

    /// Adds to `needs` the commands and permissions of the source, except those of the scripts.
    fn needs(&self, keys: &Keys, needs: &mut Needs);
}

/// Creates the source that the configuration names.
pub fn open(config: &config::Source) -> Box<dyn Source> {
    match config.kind {
        SourceKind::List | SourceKind::None => Box::new(List::new(config.take_from)),
        SourceKind::Stream => Box::new(Stream::new(&config.field, config.after_commit)),
    }
}
