//! The list of items to forget. The daemon claims them like the items of the source, and removes
//! them once the log has them.

use redis::{Cmd, Value, cmd};

use super::reply::ScriptReply;
use super::{COMMITTING, Protocol, ProtocolError, Rejects, Script, call, script};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};
use urlseen_engine::flow::source::{List, Source};

/// Scripts of the list of items to forget.
pub(super) struct Forgets {
    take: Script,
    done: Script,
}

impl Forgets {
    pub(super) fn new() -> Self {
        Self {
            take: script(&[], include_str!("lua/forgets.lua")),
            done: script(
                &[&List::from_left().lua_commit(), COMMITTING],
                include_str!("lua/forgotten.lua"),
            ),
        }
    }

    pub(super) fn scripts(&self) -> [&Script; 2] {
        [&self.take, &self.done]
    }
}

impl Protocol {
    /// Asks for the length of the list of items to forget.
    pub(crate) fn forget_length(&self) -> Cmd {
        let mut command = cmd("LLEN");
        command.arg(&self.keys.forget);
        command
    }

    /// Claims the items to forget, and reads at most `count` of them.
    pub(crate) fn forgets(&self, token: &Token, count: usize) -> Cmd {
        let keys = &self.keys;
        let mut command = call(&self.forgets.take, &[&keys.lease, &keys.forgetting, &keys.forget]);
        command.arg(token.as_str()).arg(count);
        command
    }

    /// Reads the reply to [`Protocol::forgets`].
    pub(crate) fn to_forget(&self, reply: Value) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let mut answer = ScriptReply::new("forgets", reply)?;
        answer.ok()?;
        answer.bytes()
    }

    /// Removes the first `count` items to forget, and keeps the unreadable ones as `rejects`.
    pub(crate) fn forgotten(&self, token: &Token, count: usize, rejects: &Rejects) -> Cmd {
        let Keys { lease, forgetting, rejected, oversize, .. } = &self.keys;
        let mut command = call(&self.forgets.done, &[lease, forgetting, rejected, oversize]);
        command.arg(token.as_str()).arg(count).arg(rejects.whole.len());
        rejects.push_to(&mut command, |place| place.to_string());
        command
    }

    /// Adds the keys and commands that forgetting needs of the server.
    pub(super) fn needs_to_forget(&self, needs: &mut Needs) {
        let (forget, forgetting) = (self.keys.forget.as_str(), self.keys.forgetting.as_str());
        needs.key(KeyOwner::Setting("forget.key"), forget, KeyKind::List);
        needs.key(KeyOwner::Own("forgetting list"), forgetting, KeyKind::List);
        needs.commands(forget, &["TYPE", "EXISTS", "LLEN"]);
        needs.commands(forgetting, &["TYPE", "LLEN", "LRANGE 0 0", "LTRIM 0 -1"]);
        needs.command(CommandNeed::new("RENAME").key(forget).key(forgetting));
        let moving = CommandNeed::new("LMOVE").key(forgetting).key(self.keys.oversize.as_str());
        needs.command(moving.arg("LEFT").arg("RIGHT"));
    }
}
