//! Filters in Redis, where others can share them: keys, places of fingerprints in them, and the
//! functions by which scripts judge.

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
use super::layout::native::Native;
use super::layout::{BitPosition, BitStrings, PlacementError};
use super::strings::ScriptFilter;
use super::{Cells, Outlook};
use crate::fingerprint::Fingerprint;

/// A command, and its arguments.
pub type Command = Vec<Vec<u8>>;

/// A filter in Redis, of one kind and made for something.
///
/// Each kind has functions in Lua, all under the same names: `filter_refusal(keys)`, and
/// `judge(keys, places, first, last, first_extra)`, which answers what goes on, how much of that is
/// unseen, and a function that remembers it. They stand behind `COMMON` in a script. What can fail
/// fails before that function is called.
pub trait RedisKind: fmt::Debug + Send + Sync {
    /// The numbers of the keys that ever hold anything, in order.
    fn used(&self) -> Vec<u32>;

    /// The numbers of the keys whose looks make an estimate.
    fn looked_at(&self) -> Vec<u32> {
        self.used()
    }

    /// The name of a key by its number, of the filter that is named `base` in its project's
    /// settings.
    fn key(&self, base: &str, number: u32) -> String;

    /// What a key holds.
    fn content(&self, number: u32) -> Content;

    /// Keys that filters of other sizes and variants have, and this one does not.
    fn foreign(&self, _base: &str) -> Vec<ForeignKey> {
        Vec::new()
    }

    /// A hash beside the filter in which its project keeps what it was made for.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// Refuses a fingerprint that the kind has no place for.
    ///
    /// # Errors
    /// It has none.
    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        self.positions(fingerprint).map(drop)
    }

    /// The fingerprint's bits; none where it is a member of a set.
    ///
    /// # Errors
    /// The kind has no place for it.
    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError>;

    /// Commands that ask for a fingerprint and change nothing. Each is answered by numbers, of
    /// which 1 means that a bit or a member is there.
    ///
    /// # Errors
    /// The kind has no place for it.
    fn ask(&self, base: &str, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        Ok(question::bits(self.positions(fingerprint)?, |number| self.key(base, number)))
    }

    /// Returns true if the answers to [`RedisKind::ask`] say that a fingerprint is there: for each
    /// command whether all of its bits or members are.
    fn is_seen(&self, answers: &[bool]) -> bool {
        answers.iter().all(|&is_there| is_there)
    }

    /// How many fingerprints there are, and at what share of unseen ones the filter is wrong, by
    /// a look at each of the [`RedisKind::looked_at`] keys.
    fn estimate(&self, looks: &[KeyLook]) -> Estimate;

    /// Distribution of the bits that keys choose in a string, if the bits alone tell which keys the
    /// filter has.
    fn cells(&self, _number: u32) -> Option<Cells> {
        None
    }

    /// Memory and error rate of such a filter that holds so many keys.
    fn outlook(&self, keys: u64) -> Outlook;

    /// The functions that a script calls.
    fn lua(&self) -> String;

    /// What an unseen item costs Redis, in nanoseconds, on a slow machine (docs/benchmarks.md).
    fn cost(&self) -> usize;

    /// What the functions judge these by; `None` stands for what goes on unchecked. All have
    /// passed [`RedisKind::check`].
    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question;

    /// Commands that the functions run: words and arguments, without the key behind the word.
    fn commands(&self) -> &'static [&'static [&'static str]];

    /// How many bits the filter has; 0 where it is a set.
    fn bits(&self) -> u64;

    /// How many bits a fingerprint sets; 0 where it is a set.
    fn hashes(&self) -> u32;

    /// Returns true if the filter is never wrong.
    fn is_exact(&self) -> bool {
        false
    }

    /// The layout, where the filter is of shards.
    fn native(&self) -> Option<Native> {
        None
    }

    /// An empty filter in this process's memory that judges as the scripts do; `None` where it
    /// is a set, or can live in memory anyway.
    fn in_memory(&self) -> Option<Box<dyn ScriptFilter>> {
        None
    }

    /// The layout, where the filter is nothing but strings of bits.
    fn strings(&self) -> Option<&(dyn BitStrings + Send + Sync)> {
        None
    }
}

/// What other projects hash or hold: the hex digits of a digest, plain text as it is.
pub(crate) fn text(fingerprint: &Fingerprint) -> Cow<'_, [u8]> {
    match fingerprint {
        Fingerprint::Text(text) => Cow::Borrowed(text),
        digest => Cow::Owned(digest.to_string().into_bytes()),
    }
}
