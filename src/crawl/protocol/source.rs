//! Commands for the source, which claim items, read items, and put unread items back.

use redis::{Cmd, Value};

use super::reply::{nonsense, values};
use super::{GivenBack, Protocol, ProtocolError, ScriptError};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::link::Reply;
use urlseen_engine::flow::source::{Cursor, ReadError, Source};
use urlseen_engine::item::Items;

impl Protocol {
    /// Returns the source of the crawl's items.
    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Returns the keys of three kinds of scripts: those that begin a run, end a run, or claim
    /// items.
    pub(super) fn session_keys(&self) -> [&str; 5] {
        let Keys { lease, state, source, processing, earlier_processing, .. } = &self.keys;
        [lease, state, source, processing, earlier_processing]
    }

    /// Makes a cursor from the text of a place in the source. `left` is the number of items after
    /// the place.
    pub(super) fn cursor(&self, place: &str, left: u64) -> Result<Cursor, ProtocolError> {
        let unknown = || nonsense("the question for the source's place", &place);
        Ok(Cursor { place: self.source.place(place).ok_or_else(unknown)?, left })
    }

    /// Claims the items of the source. While items are claimed, claims at most `more` items, behind
    /// those.
    pub(crate) fn claim(&self, token: &Token, more: u64) -> Cmd {
        let mut command = self.call("claim", &self.session_keys(), token);
        command.arg(self.claim_max).arg(more);
        command
    }

    /// Reads the reply to [`Protocol::claim`]. Returns the place after the last commit with the
    /// number of items after the place, and the number of items that were deleted unread.
    pub(crate) fn claimed(&self, reply: Value) -> Result<(Cursor, u64), ProtocolError> {
        let (place, left, lost): (String, _, _) = values("claim", reply)?;
        Ok((self.cursor(&place, left)?, lost))
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
        let mut command = self.call("give_back", &self.session_keys(), token);
        command.arg(most);
        command
    }

    /// Reads the reply to [`Protocol::give_back`].
    pub(crate) fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let (back, left, source) = values("give back", reply)?;
        Ok(GivenBack { back, left, source })
    }
}
