//! The source: claiming, reading, waiting, giving back.

use redis::{Cmd, Value};

use super::reply::ScriptReply;
use super::{GivenBack, Protocol, ProtocolError, ScriptError, call};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::link::Reply;
use urlseen_engine::flow::source::{Cursor, ReadError};
use urlseen_engine::item::{Items, Unreadable};

impl Protocol {
    /// The keys of the scripts around a run.
    pub(super) fn session_keys(&self) -> [&str; 5] {
        let Keys { lease, state, source, processing, earlier_processing, .. } = &self.keys;
        [lease, state, source, processing, earlier_processing]
    }

    /// A cursor in a reply.
    pub(super) fn cursor(&self, answer: &mut ScriptReply) -> Result<Cursor, ProtocolError> {
        let (text, left) = (answer.text()?, answer.count()?);
        let place = self.source.place(&text);
        let place = place.ok_or_else(|| ProtocolError::Nonsense {
            what: "where the source stands",
            reply: format!("{text:?}"),
        })?;
        Ok(Cursor { place, left })
    }

    /// Claims what the source holds.
    pub(crate) fn claim(&self, token: &Token) -> Cmd {
        let mut command = call(&self.claim, &self.session_keys());
        command.arg(token.as_str());
        command
    }

    /// The reply to [`Protocol::claim`]: where the source is committed, with what may be read after
    /// that, and how many items are newly found to have gone unread.
    pub(crate) fn claimed(&self, reply: Value) -> Result<(Cursor, u64), ProtocolError> {
        let mut answer = ScriptReply::new("claim", reply)?;
        answer.ok()?;
        Ok((self.cursor(&mut answer)?, answer.count()?))
    }

    /// Reads items after a cursor; the cursor after them, where it is known before.
    pub(crate) fn read(&self, after: Cursor, count: u64) -> (Cmd, Option<Cursor>) {
        self.source.read(&self.keys, after, count)
    }

    /// The reply to [`Protocol::read`].
    pub(crate) fn items(
        &self,
        reply: Reply,
        after: Cursor,
        count: u64,
    ) -> Result<Items, ProtocolError> {
        self.source.items(reply, after, count).map_err(|error| match error {
            ReadError::Changed(what) => ScriptError::Source { what }.into(),
            ReadError::Unexpected => {
                ProtocolError::Nonsense { what: "a read", reply: "no items".to_owned() }
            }
        })
    }

    /// The cursor after these items.
    pub(crate) fn end(&self, items: &Items) -> Cursor {
        self.source.end(items)
    }

    /// Gives unread items back, unless that moves more than `most`, and releases the lease.
    pub(crate) fn give_back(&self, token: &Token, most: usize) -> Cmd {
        let mut command = call(&self.give_back, &self.session_keys());
        command.arg(token.as_str()).arg(most);
        command
    }

    /// The reply to [`Protocol::give_back`].
    pub(crate) fn given_back(&self, reply: Value) -> Result<GivenBack, ProtocolError> {
        let mut answer = ScriptReply::new("give back", reply)?;
        answer.ok()?;
        Ok(GivenBack { back: answer.count()?, left: answer.count()?, source: answer.count()? })
    }

    /// Blocks until there is an item after the cursor, or for `seconds`.
    pub(crate) fn wait(&self, after: Cursor, seconds: f64) -> Cmd {
        self.source.wait(&self.keys, after, seconds)
    }

    /// Whether a claim may find something after this reply to [`Protocol::wait`].
    pub(crate) fn wakes(&self, reply: &Value) -> bool {
        self.source.wakes(reply)
    }

    /// Why an item cannot be read, for people.
    pub(crate) fn explain(&self, reason: &Unreadable, items: &Items, index: usize) -> String {
        self.source.explain(reason, items, index)
    }

    /// How many items wait to be claimed by the reply to [`Protocol::source_length`], where so many
    /// are.
    pub(crate) fn unclaimed(&self, waiting: u64, claimed: u64) -> u64 {
        self.source.unclaimed(waiting, claimed)
    }

    /// How many items wait to be claimed.
    pub(crate) fn source_length(&self) -> Cmd {
        self.source.waiting(&self.keys)
    }
}
