//! Commands for the source, which claim items, read items, and put unread items back.

use redis::{Cmd, Value};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::link::Reply;
use urlseen_engine::flow::source::{Cursor, ReadError, Source};
use urlseen_engine::item::Items;

use super::reply::{nonsense, values};
use super::{GivenBack, Protocol, ProtocolError, ScriptError};

impl Protocol {
    /// Returns the source of the crawl's items.
    pub(crate) fn source(&self) -> Source {
        self.source
    }

    /// Returns the keys of the script that begins a run.
    pub(super) fn begin_keys(&self) -> [&str; 3] {
        let Keys { lease, state, processing, .. } = &self.keys;
        [lease, state, processing]
    }

    /// Returns the keys of the scripts that claim items and give them back.
    fn claim_keys(&self) -> [&str; 3] {
        let Keys { lease, source, processing, .. } = &self.keys;
        [lease, source, processing]
    }

    /// Claims the items of the source. While items are claimed, claims at most `more` items, behind
    /// those.
    pub(crate) fn claim(&self, token: &Token, more: u64) -> Cmd {
        let mut command = self.call("claim", &self.claim_keys(), token);
        command.arg(self.claim_max).arg(more);
        command
    }

    /// Reads the reply to [`Protocol::claim`]: the number of claimed items.
    pub(crate) fn claimed(&self, reply: Value) -> Result<Cursor, ProtocolError> {
        let (claimed,) = values("claim", reply)?;
        Ok(claimed)
    }

    /// Reads the items in the reply to [`Source::read`].
    pub(crate) fn items(
        &self,
        reply: Reply,
        after: Cursor,
        count: u64,
    ) -> Result<Items, ProtocolError> {
        self.source.items(reply, after, count).map_err(|error| match error {
            ReadError::Changed(what) => ScriptError::Source { what }.into(),
            ReadError::Unexpected => nonsense("a read", &"no items"),
        })
    }

    /// Puts unread items back into the source, but only if at most `most` items must be moved for
    /// this. Then the script releases the lease, even if it put no items back.
    pub(crate) fn give_back(&self, token: &Token, most: usize) -> Cmd {
        let mut command = self.call("give_back", &self.claim_keys(), token);
        command.arg(most);
        command
    }

    /// Reads the reply to [`Protocol::give_back`].
    pub(crate) fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let (back, left, source) = values("give back", reply)?;
        Ok(GivenBack { back, left, source })
    }
}

impl Protocol {
    /// Removes a batch of `count` items that all partitions have. It was read after the cursor
    /// `before`.
    pub(crate) fn routed(&self, token: &Token, before: Cursor, count: u64) -> Cmd {
        let Keys { lease, processing, .. } = &self.keys;
        let mut command = self.call("routed", &[lease, processing], token);
        command.arg(before).arg(count);
        command
    }
}
