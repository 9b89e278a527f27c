//! A Redis list as source. The items are claimed by renaming the list to the processing list, where
//! they stay until their commit. A cursor is the number of items after it in the processing list.
//! No item is added to that list, so a cursor stays valid when items before it are removed.

use redis::{Cmd, Value, cmd};

use super::{Cursor, ReadError, Source};
use crate::config::End;
use crate::item::{Items, Unreadable};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// A list, and the end from which items are taken.
#[derive(Debug)]
pub struct List {
    take_from: End,
}

impl List {
    /// Creates a source that takes items from the given end.
    pub fn new(take_from: End) -> Self {
        Self { take_from }
    }

    /// Creates a source that takes items from the left end.
    pub fn from_left() -> Self {
        Self::new(End::Left)
    }

    /// Builds the command that reads `count` items of a list, in the order in which the crawl takes
    /// them. The command skips the first `from` items.
    pub fn window(&self, list: &str, from: u64, count: u64) -> Cmd {
        let mut command = cmd("LRANGE");
        command.arg(list);
        match self.take_from {
            End::Left => command.arg(from).arg(from + count - 1),
            // Redis counts from the right end with negative indexes: the last item is -1.
            End::Right => command.arg(format!("-{}", from + count)).arg(format!("-{}", from + 1)),
        };
        command
    }

    /// Returns the items in the reply to [`List::window`], or `None` if the reply has another form.
    pub fn taken(&self, reply: Reply) -> Option<Items> {
        let (bytes, mut places) = reply.into_strings()?;
        if self.take_from == End::Right {
            places.reverse();
        }
        Some(Items::new(bytes, places))
    }

    fn lua(&self, functions: &str) -> String {
        let end = match self.take_from {
            End::Left => "left",
            End::Right => "right",
        };
        format!("local TAKE_FROM = '{end}'\nlocal PUSH = '{}'\n{functions}", self.push())
    }
}

impl Source for List {
    fn push(&self) -> &'static str {
        match self.take_from {
            End::Left => "RPUSH",
            End::Right => "LPUSH",
        }
    }

    fn claimed<'a>(&self, keys: &'a Keys) -> &'a str {
        &keys.processing
    }

    fn lua_session(&self) -> String {
        self.lua(include_str!("list_session.lua"))
    }

    fn lua_commit(&self) -> String {
        self.lua(include_str!("list.lua"))
    }

    fn lua_requeue(&self) -> String {
        self.lua(include_str!("list_requeue.lua"))
    }

    fn place(&self, text: &str) -> Option<u128> {
        text.parse().ok()
    }

    fn read(&self, keys: &Keys, after: Cursor, count: u64) -> (Cmd, Option<Cursor>) {
        let left = after.left - count;
        let mut command = cmd("LRANGE");
        command.arg(&keys.processing);
        match self.take_from {
            // Redis counts from the right end with negative indexes: the last item is -1.
            End::Left => command.arg(format!("-{}", after.left)).arg(format!("-{}", left + 1)),
            End::Right => command.arg(left).arg(after.left - 1),
        };
        (command, Some(Cursor { place: left.into(), left }))
    }

    fn items(&self, reply: Reply, after: Cursor, count: u64) -> Result<Items, ReadError> {
        let items = self.taken(reply).ok_or(ReadError::Unexpected)?;
        if items.len() as u64 != count {
            let found = after.left - count + items.len() as u64;
            let what = format!("the list of claimed items: it now holds {found} items");
            return Err(ReadError::Changed(what));
        }
        Ok(items.before(after.left - count))
    }

    fn end(&self, items: &Items) -> Cursor {
        Cursor { place: items.left().into(), left: items.left() }
    }

    fn span(&self, before: Cursor, items: &Items) -> [String; 2] {
        [before.place.to_string(), items.len().to_string()]
    }

    fn mark(&self, _: &Items, index: usize) -> String {
        index.to_string()
    }

    fn explain(&self, reason: &Unreadable, _: &Items, _: usize) -> String {
        reason.to_string()
    }

    fn wait(&self, keys: &Keys, _: Cursor, seconds: f64) -> Cmd {
        // Moves an item from one end to the same end, which changes nothing. Blocks while the list
        // is empty.
        let mut command = cmd("BLMOVE");
        command.arg(&keys.source).arg(&keys.source).arg("LEFT").arg("LEFT").arg(seconds);
        command
    }

    fn wakes(&self, reply: &Value) -> bool {
        *reply != Value::Nil
    }

    fn waiting(&self, keys: &Keys) -> Cmd {
        let mut command = cmd("LLEN");
        command.arg(&keys.source);
        command
    }

    fn unclaimed(&self, waiting: u64, _: u64) -> u64 {
        waiting
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let Keys { source, processing, earlier_processing: earlier, oversize, .. } = keys;
        let [source, processing, oversize] = [source, processing, oversize].map(String::as_str);
        needs.key(KeyOwner::Setting("source.key"), source, KeyKind::List);
        needs.key(KeyOwner::Own("list of claimed items"), processing, KeyKind::List);
        let command = CommandNeed::new;
        for key in [source, processing, earlier] {
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
        needs.command(command("LMOVE").key(processing).key(oversize).arg("LEFT").arg("RIGHT"));
    }
}
