//! Filters in Redis, which other programs can share: their Redis keys, the bit positions of
//! fingerprints, and the Lua functions that test and add items.

mod content;
mod keys;
mod question;
mod strings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub use self::content::{Content, Estimate, ForeignKey, KeyLook, Record};
pub use self::keys::RedisFilterKeys;
pub(super) use self::question::Asked;
pub use self::question::Question;
pub(super) use self::strings::{BIT, InStrings};
use super::Outlook;
use super::layout::native::Native;
use super::layout::{BitPosition, PlacementError};
use super::strings::ScriptFilter;
use crate::fingerprint::Fingerprint;

/// A command and its arguments.
pub type Command = Vec<Vec<u8>>;

/// A filter in Redis, of one kind and with its parameters.
///
/// Each kind has two functions in Lua: `filter_refusal(keys)` and `judge(keys, places, first, last,
/// first_extra)`. All kinds use these two names. `judge` returns the items to emit, the number of
/// unseen items among them, and a function that adds the unseen items to the filter. In a script,
/// the functions come after `COMMON`. Every check that can fail runs before items are added.
pub trait RedisKind: fmt::Debug + Send + Sync {
    /// Returns the numbers of the Redis keys that can have content, in order.
    fn used(&self) -> Vec<u32>;

    /// Returns the numbers of the Redis keys that an estimate needs.
    fn looked_at(&self) -> Vec<u32> {
        self.used()
    }

    /// Returns the name of a Redis key by its number. `base` is the filter's name in the project's
    /// settings.
    fn key(&self, base: &str, number: u32) -> String;

    /// Returns the expected content of a Redis key.
    fn content(&self, number: u32) -> Content;

    /// Returns Redis keys that only filters of other sizes or variants have.
    fn foreign(&self, _base: &str) -> Vec<ForeignKey> {
        Vec::new()
    }

    /// Returns the Redis hash in which the kind's project keeps the parameters, if it has one.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// Checks that the kind can place a fingerprint.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        self.positions(fingerprint).map(drop)
    }

    /// Returns the bit positions of a fingerprint; none if the filter is a set.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError>;

    /// Returns read-only commands that test a fingerprint. The reply to each command consists of
    /// numbers; 1 stands for a set bit or an existing member.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    fn ask(&self, base: &str, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        Ok(question::bits(self.positions(fingerprint)?, |number| self.key(base, number)))
    }

    /// Returns true if the answers to [`RedisKind::ask`] mean that a fingerprint is seen. Each
    /// answer is true if all bits or members of its command are there.
    fn is_seen(&self, answers: &[bool]) -> bool {
        answers.iter().all(|&is_there| is_there)
    }

    /// Estimates the number of fingerprints and the error rate, from the size and the fill of each
    /// key of [`RedisKind::looked_at`].
    fn estimate(&self, looks: &[KeyLook]) -> Estimate;

    /// Returns the number of bits at the start of each string that uneven hashes crowd, so that a
    /// comparison leaves them out. `None` if the bits alone do not give the number of fingerprints
    /// that two filters share.
    fn crowded_bits(&self) -> Option<u64> {
        None
    }

    /// Returns memory and error rate of a filter of this kind with this number of keys.
    fn outlook(&self, keys: u64) -> Outlook;

    /// Returns the Lua functions of the kind, which a script calls.
    fn lua(&self) -> String;

    /// Returns the time that Redis takes for an unseen item on a slow machine, in nanoseconds.
    fn cost(&self) -> usize;

    /// Returns the question about these fingerprints for the Lua functions. `None` stands for an
    /// item that passes unchecked. All fingerprints must have passed [`RedisKind::check`].
    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question;

    /// Returns the Redis commands that the Lua functions run: each command's words and arguments,
    /// without its key.
    fn commands(&self) -> &'static [&'static [&'static str]];

    /// Returns the native layout, if the filter has shards.
    fn native(&self) -> Option<Native> {
        None
    }

    /// Builds an empty filter in this process's memory that gives the same verdicts as the scripts.
    /// Returns `None` if the filter is a set, or if its kind also exists in memory.
    fn in_memory(&self) -> Option<Box<dyn ScriptFilter>> {
        None
    }
}

/// Returns the text that other projects hash or store: the hex digits of a digest, or plain text
/// unchanged.
pub(crate) fn text(fingerprint: &Fingerprint) -> Cow<'_, [u8]> {
    match fingerprint {
        Fingerprint::Text(text) => Cow::Borrowed(text),
        digest => Cow::Owned(digest.to_string().into_bytes()),
    }
}
