//! Commands of a router, which moves the items of a source to the partitions.

use redis::{Cmd, Value, cmd};
use sha1::{Digest, Sha1};

use super::reply::values;
use super::{Protocol, ProtocolError};
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::script::{COMMON, Script};
use urlseen_engine::flow::source::Cursor;
use urlseen_engine::item::Items;

/// Maximum number of marks in the inbox of a partition. It exceeds the number of items that a
/// router has in flight.
const MARKS: usize = 100_000;

/// Position in the history of a source: the number of items that were routed before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) history: String,
    pub(crate) routed: u64,
}

impl Position {
    /// Returns the mark of the item that is `index` items after this position. After a failover,
    /// another item can have the same position, so the mark contains a hash of the item (rule R2).
    pub(crate) fn mark(&self, index: usize, item: &[u8]) -> String {
        let hash: [u8; 8] = Sha1::digest(item)[..8].try_into().expect("a SHA-1 has 20 bytes");
        let place = self.routed + index as u64;
        format!("{}:{place}:{:016x}", self.history, u64::from_be_bytes(hash))
    }
}

impl Protocol {
    /// Names the history of the source, and asks for its position.
    pub(crate) fn history(&self, token: &Token) -> Cmd {
        let Keys { lease, state, .. } = &self.keys;
        let mut command = self.call("history", &[lease, state], token);
        command.arg(RandomId::random().to_string());
        command
    }

    /// Reads the reply to [`Protocol::history`].
    pub(crate) fn position(&self, reply: Value) -> Result<Position, ProtocolError> {
        let (history, routed) = values("the history of the source", reply)?;
        Ok(Position { history, routed })
    }

    /// Removes a batch that all partitions have. It was read after the cursor `before`, at
    /// `position`.
    pub(crate) fn routed(
        &self,
        token: &Token,
        position: &Position,
        before: Cursor,
        items: &Items,
    ) -> Cmd {
        let Keys { lease, state, processing, oversize, .. } = &self.keys;
        let mut command = self.call("routed", &[lease, state, processing, oversize], token);
        command.arg(&position.history).arg(position.routed).arg(items.len()).arg(before);
        command
    }
}

/// Commands that push items to one partition.
pub(crate) struct Inbox {
    source: String,
    inbox: String,
    push: &'static str,
    script: Script,
}

impl Inbox {
    /// Builds the commands for the partition with these keys. `push` is the command of producers.
    pub(crate) fn new(keys: &Keys, push: &'static str) -> Self {
        let script = Script::new(&[COMMON, include_str!("lua/inbox.lua")].join("\n"));
        Self { source: keys.source.clone(), inbox: keys.inbox.clone(), push, script }
    }

    /// Builds the command that loads the script into a server.
    pub(crate) fn load(&self) -> Cmd {
        self.script.load()
    }

    /// Pushes items that have a fingerprint. If they are pushed twice, the filter of the partition
    /// drops the second ones.
    pub(crate) fn push<'a>(&self, items: impl Iterator<Item = &'a [u8]>) -> Cmd {
        let mut command = cmd(self.push);
        command.arg(&self.source);
        for item in items {
            command.arg(item);
        }
        command
    }

    /// Pushes items that have no fingerprint, each with its mark. The partition ignores an item
    /// whose mark it has.
    pub(crate) fn push_marked<'a>(&self, items: impl Iterator<Item = (&'a str, &'a [u8])>) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(self.script.hash()).arg(2).arg(&self.source).arg(&self.inbox);
        command.arg(self.push).arg(MARKS);
        for (mark, item) in items {
            command.arg(mark).arg(item);
        }
        command
    }
}
