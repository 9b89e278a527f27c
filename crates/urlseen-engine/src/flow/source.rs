//! Source of a crawl: a Redis list from which the crawl takes discovered items.
//!
//! The items are claimed by renaming the list to the processing list, where they stay until their
//! commit. The script of the commit checks that the processing list is as it was when the batch was
//! read. The same script pushes the unseen items, and removes the batch from the processing list.

use redis::{Cmd, cmd};

use crate::config::End;
use crate::item::Items;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::{CommandNeed, KeyOwner, Needs};

/// Place between two items of the processing list: the number of items after it. No item is added
/// to that list, so a cursor stays valid when items before it are removed.
pub type Cursor = u64;

/// Reason that a reply to [`Source::read`] gives no items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The reply does not have the form of a reply to this command.
    Unexpected,
    /// Another program changed the list. The text describes the change for people.
    Changed(String),
}

/// A list, and the end from which items are taken.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    take_from: End,
}

impl Source {
    /// Creates a source that takes items from the given end.
    pub fn new(take_from: End) -> Self {
        Self { take_from }
    }

    /// Returns the command with which producers push an item.
    pub fn push(self) -> &'static str {
        match self.take_from {
            End::Left => "RPUSH",
            End::Right => "LPUSH",
        }
    }

    /// Returns the definition of `TAKE_FROM`, the end from which items are taken, for Lua scripts.
    pub fn lua(self) -> String {
        format!("local TAKE_FROM = '{}'", self.take_from)
    }

    /// Builds the command that reads `count` items of a list, in the order in which the crawl takes
    /// them. The command skips the first `from` items.
    pub fn window(self, list: &str, from: u64, count: u64) -> Cmd {
        let mut command = cmd("LRANGE");
        command.arg(list);
        match self.take_from {
            End::Left => command.arg(from).arg(from + count - 1),
            // Redis counts from the right end with negative indexes: the last item is -1.
            End::Right => command.arg(format!("-{}", from + count)).arg(format!("-{}", from + 1)),
        };
        command
    }

    /// Returns the items in the reply to [`Source::window`], or `None` if the reply has another
    /// form.
    pub fn taken(self, reply: Reply) -> Option<Items> {
        let (bytes, mut places) = reply.into_strings()?;
        if self.take_from == End::Right {
            places.reverse();
        }
        Some(Items::new(bytes, places))
    }

    /// Builds the command that reads `count` items of the processing list after a cursor.
    pub fn read(self, keys: &Keys, after: Cursor, count: u64) -> Cmd {
        let left = after - count;
        let mut command = cmd("LRANGE");
        command.arg(&keys.processing);
        match self.take_from {
            // Redis counts from the right end with negative indexes: the last item is -1.
            End::Left => command.arg(format!("-{after}")).arg(format!("-{}", left + 1)),
            End::Right => command.arg(left).arg(after - 1),
        };
        command
    }

    /// Returns the items in the reply to [`Source::read`].
    pub fn items(self, reply: Reply, after: Cursor, count: u64) -> Result<Items, ReadError> {
        let items = self.taken(reply).ok_or(ReadError::Unexpected)?;
        let left = after - count;
        if items.len() as u64 != count {
            let found = left + items.len() as u64;
            let what = format!("the list of claimed items: it now holds {found} items");
            return Err(ReadError::Changed(what));
        }
        Ok(items.before(left))
    }

    /// Builds a command that waits until the source has an item, and changes nothing: it moves an
    /// item from one end to the same end. Its reply is nil if no item comes within `seconds`.
    pub fn wait(self, keys: &Keys, seconds: f64) -> Cmd {
        let mut command = cmd("BLMOVE");
        command.arg(&keys.source).arg(&keys.source).arg("LEFT").arg("LEFT").arg(seconds);
        command
    }

    /// Adds to `needs` the commands and permissions of the source.
    pub fn needs(self, keys: &Keys, needs: &mut Needs) {
        let Keys { source, processing, .. } = keys;
        let [source, processing] = [source, processing].map(String::as_str);
        needs.key(KeyOwner::Setting("source.key"), source, "list");
        needs.key(KeyOwner::Own("list of claimed items"), processing, "list");
        let command = CommandNeed::new;
        for key in [source, processing] {
            needs.command(command("TYPE").key(key));
        }
        let wait = command("BLMOVE").key(source).key(source).arg("LEFT").arg("LEFT").arg("1");
        needs.command(wait);
        needs.command(command("LTRIM").key(processing).arg("0").arg("-1"));
        needs.command(command("LRANGE").key(processing).arg("0").arg("0"));
        needs.command(command("EXISTS").key(source));
        // A claim renames the source. To give items back, the script moves the items of the shorter
        // list to the longer list. If the longer list is the processing list, the script then
        // renames it to the source.
        for (from, to) in [(source, processing), (processing, source)] {
            needs.command(command("LLEN").key(from));
            needs.command(command("RENAME").key(from).key(to));
            needs.command(command("LMOVE").key(from).key(to).arg("LEFT").arg("LEFT"));
        }
    }
}
