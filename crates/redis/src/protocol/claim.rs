//! Claims: commands that claim items of the source, read them, remove them, and put unread items
//! back.
//!
//! The items are claimed by renaming the list to the processing list, where they stay until their
//! commit. The daemon claims the items to forget in the same way. It removes these from Redis after
//! the log has recorded that they are forgotten.

use std::ops::Range;

use bytes::Bytes;
use redis::{Cmd, Value, cmd};
use urlseen_filter::choice::End;

use super::reply::{nonsense, values};
use super::{GivenBack, Keys, Protocol, ProtocolError, ScriptError, Token};
use crate::link::Reply;
use crate::preflight::{KeyOwner, Needs};

/// Place between two items of the processing list: the number of items after it. A cursor stays
/// valid when items before it are removed. Only a claim adds items, when no cursor is in use.
pub type Cursor = u64;

/// Bytes that contain items, and the place of each item in them.
pub type Places = (Bytes, Vec<Range<usize>>);

/// A list, and the end from which items are taken.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// End from which the crawl takes items.
    pub take_from: End,
}

/// List of claimed items to forget.
const FORGETS: Source = Source { take_from: End::Left };

impl Source {
    /// Returns the command with which producers push an item.
    pub fn push(self) -> &'static str {
        match self.take_from {
            End::Left => "RPUSH",
            End::Right => "LPUSH",
        }
    }

    /// Returns the end from which items are taken, as the scripts take it.
    pub(super) fn take_from(self) -> String {
        self.take_from.to_string()
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
    pub fn taken(self, reply: Reply) -> Option<Places> {
        let (bytes, mut places) = reply.into_strings()?;
        if self.take_from == End::Right {
            places.reverse();
        }
        Some((bytes, places))
    }

    /// Adds to `needs` the commands and permissions of the source.
    pub(super) fn needs(self, keys: &Keys, needs: &mut Needs) {
        let Keys { source, processing, .. } = keys;
        needs.key(KeyOwner::Setting("source.key"), source, "list");
        needs.key(KeyOwner::Own("list of claimed items"), processing, "list");
        needs.commands(&[source, source], &["TYPE $", "EXISTS $", "BLMOVE $ $ LEFT LEFT 1"]);
        needs.commands(&[processing], &["TYPE $", "LTRIM $ 0 -1", "LRANGE $ 0 0"]);
        // A claim renames the source. To give items back, the script moves the items of the shorter
        // list to the longer list. If the longer list is the processing list, the script then
        // renames it to the source.
        for lists in [[source, processing], [processing, source]] {
            let lists = lists.map(String::as_str);
            needs.commands(&lists, &["LLEN $", "RENAME $ $", "LMOVE $ $ LEFT LEFT"]);
        }
    }
}

impl Protocol {
    /// Claims the items of the source. While items are claimed, claims at most `more` items, behind
    /// those.
    pub fn claim(&self, token: &Token, more: u64) -> Cmd {
        let Keys { lease, source, processing, .. } = &self.keys;
        let mut command = self.call("claim", &[lease, source, processing], token);
        command.arg(self.source.take_from()).arg(self.claim_max).arg(more);
        command
    }

    /// Claims the items to forget, unless some are claimed.
    pub fn claim_forgets(&self, token: &Token) -> Cmd {
        let Keys { lease, forget, forgetting, .. } = &self.keys;
        let mut command = self.call("claim", &[lease, forget, forgetting], token);
        command.arg(FORGETS.take_from()).arg(0).arg(0);
        command
    }

    /// Reads the reply to [`Protocol::claim`]: the number of claimed items.
    pub fn claimed(&self, reply: Value) -> Result<Cursor, ProtocolError> {
        let (claimed,) = values("claim", reply)?;
        Ok(claimed)
    }

    /// Builds the command that reads the first `count` claimed items.
    pub fn first(&self, count: u64) -> Cmd {
        self.source.window(&self.keys.processing, 0, count)
    }

    /// Builds the command that reads `count` claimed items after a cursor.
    pub fn read(&self, after: Cursor, count: u64) -> Cmd {
        let left = after - count;
        let mut command = cmd("LRANGE");
        command.arg(&self.keys.processing);
        match self.source.take_from {
            // Redis counts from the right end with negative indexes: the last item is -1.
            End::Left => command.arg(format!("-{after}")).arg(format!("-{}", left + 1)),
            End::Right => command.arg(left).arg(after - 1),
        };
        command
    }

    /// Reads the reply to [`Protocol::read`].
    pub fn items(&self, reply: Reply, after: Cursor, count: u64) -> Result<Places, ProtocolError> {
        let items = self.source.taken(reply).ok_or_else(|| nonsense("a read", &"no items"))?;
        let found = items.1.len() as u64;
        if found != count {
            let found = after - count + found;
            let what = format!("the list of claimed items: it now holds {found} items");
            return Err(ScriptError::Source { what }.into());
        }
        Ok(items)
    }

    /// Builds a command that waits until the source has an item, and changes nothing: it moves an
    /// item from one end to the same end. Its reply is nil if no item comes within `seconds`.
    pub fn wait_for_items(&self, seconds: f64) -> Cmd {
        let mut command = cmd("BLMOVE");
        command.arg(&self.keys.source).arg(&self.keys.source);
        command.arg("LEFT").arg("LEFT").arg(seconds);
        command
    }

    /// Removes a batch of `count` items that a router has pushed. It was read after the cursor
    /// `before`.
    pub(crate) fn routed(&self, token: &Token, before: Cursor, count: u64) -> Cmd {
        let Keys { lease, processing, .. } = &self.keys;
        let mut command = self.call("trim", &[lease, processing], token);
        command.arg(self.source.take_from()).arg(before).arg(count);
        command
    }

    /// Puts unread items back into the source, but only if at most `most` items must be moved for
    /// this. Then the script releases the lease, even if it put no items back.
    pub fn give_back(&self, token: &Token, most: usize) -> Cmd {
        let Keys { lease, source, processing, .. } = &self.keys;
        let mut command = self.call("give_back", &[lease, source, processing], token);
        command.arg(self.source.take_from()).arg(most);
        command
    }

    /// Reads the reply to [`Protocol::give_back`].
    pub fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let (back, left, source) = values("give back", reply)?;
        Ok(GivenBack { back, left, source })
    }

    /// Builds the command that reads at most `count` claimed items to forget.
    pub fn read_forgets(&self, count: u64) -> Cmd {
        FORGETS.window(&self.keys.forgetting, 0, count)
    }

    /// Removes the first `count` items to forget, and stores `rejects` for the unreadable items.
    pub fn forgotten(&self, token: &Token, count: usize, rejects: &[Vec<u8>]) -> Cmd {
        let Keys { lease, forgetting, rejected, .. } = &self.keys;
        let mut command = self.call("trim", &[lease, forgetting, rejected], token);
        command.arg(FORGETS.take_from()).arg("").arg(count).arg(rejects);
        command
    }

    /// Adds to `needs` the keys and commands that the server must permit for forgetting.
    pub(super) fn needs_to_forget(&self, needs: &mut Needs) {
        let Keys { forget, forgetting, .. } = &self.keys;
        needs.key(KeyOwner::Setting("forget.key"), forget, "list");
        needs.key(KeyOwner::Own("forgetting list"), forgetting, "list");
        needs.commands(&[forget, forgetting], &["LLEN $", "RENAME $ $"]);
        needs.commands(&[forgetting], &["TYPE $", "LLEN $", "LRANGE $ 0 0", "LTRIM $ 0 -1"]);
    }
}
