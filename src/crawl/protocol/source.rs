//! Calls about the source: claim, read, wait, give back.

use redis::{Cmd, Value};

use super::reply::{ScriptReply, nonsense};
use super::{GivenBack, Protocol, ProtocolError, ScriptError, call};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::link::Reply;
use urlseen_engine::flow::source::{Cursor, ReadError};
use urlseen_engine::item::{Items, Unreadable};

impl Protocol {
    /// Lists the keys of the scripts that begin or end a run, or claim items.
    pub(super) fn session_keys(&self) -> [&str; 5] {
        let Keys { lease, state, source, processing, earlier_processing, .. } = &self.keys;
        [lease, state, source, processing, earlier_processing]
    }

    /// Reads a cursor from a reply.
    pub(super) fn cursor(&self, answer: &mut ScriptReply) -> Result<Cursor, ProtocolError> {
        let (text, left) = (answer.text()?, answer.count()?);
        let place = self.source.place(&text);
        let place = place.ok_or_else(|| nonsense("where the source stands", &text))?;
        Ok(Cursor { place, left })
    }

    /// Claims the items of the source.
    pub(crate) fn claim(&self, token: &Token) -> Cmd {
        let mut command = call(&self.claim, &self.session_keys());
        command.arg(token.as_str());
        command
    }

    /// Reads the reply to [`Protocol::claim`]. Returns the source's committed place with the number
    /// of items readable after it, and the number of items newly found to have gone unread.
    pub(crate) fn claimed(&self, reply: Value) -> Result<(Cursor, u64), ProtocolError> {
        let mut answer = ScriptReply::new("claim", reply)?;
        answer.ok()?;
        Ok((self.cursor(&mut answer)?, answer.count()?))
    }

    /// Reads items after a cursor. Returns the cursor after them, too, if it is known before the
    /// reply.
    pub(crate) fn read(&self, after: Cursor, count: u64) -> (Cmd, Option<Cursor>) {
        self.source.read(&self.keys, after, count)
    }

    /// Reads the reply to [`Protocol::read`].
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

    /// Returns the cursor after these items.
    pub(crate) fn end(&self, items: &Items) -> Cursor {
        self.source.end(items)
    }

    /// Gives unread items back, unless that moves more than `most`, and releases the lease.
    pub(crate) fn give_back(&self, token: &Token, most: usize) -> Cmd {
        let mut command = call(&self.give_back, &self.session_keys());
        command.arg(token.as_str()).arg(most);
        command
    }

    /// Reads the reply to [`Protocol::give_back`].
    pub(crate) fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let mut answer = ScriptReply::new("give back", reply)?;
        answer.ok()?;
        Ok(GivenBack { back: answer.count()?, left: answer.count()?, source: answer.count()? })
    }

    /// Blocks until there is an item after the cursor, or for `seconds`.
    pub(crate) fn wait(&self, after: Cursor, seconds: f64) -> Cmd {
        self.source.wait(&self.keys, after, seconds)
    }

    /// Returns true if a claim may find an item after this reply to [`Protocol::wait`].
    pub(crate) fn wakes(&self, reply: &Value) -> bool {
        self.source.wakes(reply)
    }

    /// Explains to a person why an item cannot be read.
    pub(crate) fn explain(&self, reason: &Unreadable, items: &Items, index: usize) -> String {
        self.source.explain(reason, items, index)
    }

    /// Returns how many items wait to be claimed. `waiting` is the reply to
    /// [`Protocol::source_length`], and `claimed` the number of claimed items.
    pub(crate) fn unclaimed(&self, waiting: u64, claimed: u64) -> u64 {
        self.source.unclaimed(waiting, claimed)
    }

    /// Asks how many items wait to be claimed.
    pub(crate) fn source_length(&self) -> Cmd {
        self.source.waiting(&self.keys)
    }
}
