//! A Redis stream as source. Entries stay in the stream and are read after the id of the last
//! committed entry. That id is in the crawl's state, and only a commit changes it.

use std::fmt::Write as _;

use redis::{Cmd, Value, cmd};

use super::{Cursor, ReadError, Source};
use crate::config::AfterCommit;
use crate::item::{Items, Unreadable};
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::{Entries, Reply};
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};
use urlseen_core::redis::script::Script;

/// A stream whose entries have an item in one of their fields.
#[derive(Debug)]
pub(super) struct Stream {
    field: String,
    after_commit: AfterCommit,
    /// Script that counts the entries after the last committed one.
    waiting: Script,
}

/// Formats an id as Redis does.
fn id(place: u128) -> String {
    format!("{}-{}", place >> 64, place & u128::from(u64::MAX))
}

impl Stream {
    pub(super) fn new(field: &str, after_commit: AfterCommit) -> Self {
        let text = format!(
            "{}\nreturn source_waiting(KEYS[1], {{KEYS[2]}})",
            lua(field, after_commit, &[include_str!("stream.lua")])
        );
        Self { field: field.to_owned(), after_commit, waiting: Script::new(&text) }
    }

    fn lua(&self, parts: &[&str]) -> String {
        lua(&self.field, self.after_commit, parts)
    }
}

/// Returns a Lua text: definitions of `FIELD` and `AFTER`, and then `parts`, which use both.
fn lua(field: &str, after_commit: AfterCommit, parts: &[&str]) -> String {
    let mut bytes = String::new();
    for byte in field.bytes() {
        let _ = write!(bytes, "\\{byte:03}");
    }
    format!("local FIELD = '{bytes}'\nlocal AFTER = '{after_commit}'\n{}", parts.join("\n"))
}

impl Source for Stream {
    fn push(&self) -> &'static str {
        "XADD"
    }

    fn claimed<'a>(&self, keys: &'a Keys) -> &'a str {
        &keys.source
    }

    fn lua_session(&self) -> String {
        self.lua(&[include_str!("stream.lua"), include_str!("stream_session.lua")])
    }

    fn lua_commit(&self) -> String {
        self.lua(&[include_str!("stream.lua"), include_str!("stream_commit.lua")])
    }

    fn lua_requeue(&self) -> String {
        self.lua(&[include_str!("stream_requeue.lua")])
    }

    fn place(&self, text: &str) -> Option<u128> {
        let (milliseconds, number) = text.split_once('-')?;
        let part = |text: &str| text.parse::<u64>().ok().map(u128::from);
        Some(part(milliseconds)? << 64 | part(number)?)
    }

    fn read(&self, keys: &Keys, after: Cursor, count: u64) -> (Cmd, Option<Cursor>) {
        let mut command = cmd("XRANGE");
        command.arg(&keys.source).arg(format!("({}", id(after.place))).arg("+");
        command.arg("COUNT").arg(count);
        (command, None)
    }

    /// If the reply has fewer items than requested, assumes that no further items are in the
    /// stream.
    fn items(&self, reply: Reply, after: Cursor, count: u64) -> Result<Items, ReadError> {
        let entries = reply.into_entries(self.field.as_bytes()).ok_or(ReadError::Unexpected)?;
        let Entries { bytes, ids, values, largest } = entries;
        let items = Items::new(bytes, values).marked(ids, largest);
        let is_end = (items.len() as u64) < count;
        Ok(items.before(if is_end { 0 } else { after.left - count }))
    }

    fn end(&self, items: &Items) -> Cursor {
        let place = *items.marks().last().expect("a batch has an item");
        Cursor { place, left: items.left() }
    }

    fn span(&self, before: Cursor, items: &Items) -> [String; 2] {
        let end = self.end(items).place;
        let mut span = format!("{} {}", id(end), items.len());
        match self.after_commit {
            AfterCommit::Keep => {}
            AfterCommit::Delete => {
                for &mark in items.marks() {
                    let _ = write!(span, " {}", id(mark));
                }
            }
            AfterCommit::Trim => {
                let _ = write!(span, " {}", id(end.saturating_add(1)));
            }
        }
        [id(before.place), span]
    }

    fn mark(&self, items: &Items, index: usize) -> String {
        id(items.marks()[index])
    }

    fn explain(&self, reason: &Unreadable, items: &Items, index: usize) -> String {
        let id = self.mark(items, index);
        match reason {
            Unreadable::Empty => {
                format!("the entry {id} has no field {:?}, or the field is empty", self.field)
            }
            other => format!("{other} (entry {id})"),
        }
    }

    fn wait(&self, keys: &Keys, after: Cursor, seconds: f64) -> Cmd {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(format!("{:.0}", seconds * 1000.0));
        command.arg("STREAMS").arg(&keys.source).arg(id(after.place));
        command
    }

    /// Returns true for every reply. If the stream was deleted and created again, its ids can be
    /// lower than the cursor. An entry with such an id does not end a wait, so the reply does not
    /// show it. Only a claim detects such a stream.
    fn wakes(&self, _: &Value) -> bool {
        true
    }

    fn waiting(&self, keys: &Keys) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(self.waiting.text()).arg(2).arg(&keys.state).arg(&keys.source);
        command
    }

    fn unclaimed(&self, waiting: u64, claimed: u64) -> u64 {
        waiting.saturating_sub(claimed)
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let Keys { source, state, processing, .. } = keys;
        let [source, state, processing] = [source, state, processing].map(String::as_str);
        needs.key(KeyOwner::Setting("source.key"), source, KeyKind::Stream);
        let command = CommandNeed::new;
        needs.command(command("TYPE").key(source));
        needs.command(command("EXISTS").key(source));
        needs.command(command("EXISTS").key(processing));
        needs.command(command("XINFO STREAM").key(source));
        needs.command(command("XRANGE").key(source).arg("-").arg("+"));
        let wait = ["COUNT", "1", "BLOCK", "1", "STREAMS"];
        let wait = wait.into_iter().fold(command("XREAD"), CommandNeed::arg);
        needs.command(wait.key(source).arg("0-0"));
        needs.command(command("HMGET").key(state).arg("cursor").arg("entries"));
        needs.command(command("HSET").key(state).arg("cursor").arg("0-0"));
        match self.after_commit {
            AfterCommit::Keep => {}
            AfterCommit::Delete => {
                needs.command(command("XDEL").key(source).arg("0-0"));
            }
            AfterCommit::Trim => {
                needs.command(command("XTRIM").key(source).arg("MINID").arg("0-0"));
            }
        }
    }
}
