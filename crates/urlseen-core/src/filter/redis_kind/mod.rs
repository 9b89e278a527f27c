//! Filters in Redis, which other programs can share: their keys, the places of fingerprints, and
//! the functions by which scripts judge.

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

/// A command and its arguments.
pub type Command = Vec<Vec<u8>>;

/// A filter in Redis, of one kind and with its parameters.
///
/// Each kind has functions in Lua, all under the same names: `filter_refusal(keys)`, and
/// `judge(keys, places, first, last, first_extra)`. `judge` answers the items to emit, the number
/// of unseen ones among them, and a function that adds these to the filter. The functions come
/// after `COMMON` in a script. Every failure comes before that last function is called.
pub trait RedisKind: fmt::Debug + Send + Sync {
    /// Returns the numbers of the keys that ever have content, in order.
    fn used(&self) -> Vec<u32>;

    /// Returns the numbers of the keys whose findings make an estimate.
    fn looked_at(&self) -> Vec<u32> {
        self.used()
    }

    /// Returns the name of a key by its number. The project's settings name the filter `base`.
    fn key(&self, base: &str, number: u32) -> String;

    /// Returns the content of a key.
    fn content(&self, number: u32) -> Content;

    /// Returns keys that filters of other sizes and variants have, and this one does not.
    fn foreign(&self, _base: &str) -> Vec<ForeignKey> {
        Vec::new()
    }

    /// Returns the hash in which another project keeps the parameters, if it has one.
    fn record(&self, _base: &str) -> Option<Record> {
        None
    }

    /// Refuses a fingerprint that the kind has no place for.
    ///
    /// # Errors
    /// If there is no place.
    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        self.positions(fingerprint).map(drop)
    }

    /// Returns the fingerprint's bits; none if the filter is a set.
    ///
    /// # Errors
    /// If the kind has no place for it.
    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError>;

    /// Returns commands that ask for a fingerprint and change nothing. Each is answered by numbers;
    /// 1 means that a bit or a member is there.
    ///
    /// # Errors
    /// If the kind has no place for it.
    fn ask(&self, base: &str, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        Ok(question::bits(self.positions(fingerprint)?, |number| self.key(base, number)))
    }

    /// Returns true if the answers to [`RedisKind::ask`] mean that a fingerprint is seen. Each
    /// answer is true if all bits or members of its command are there.
    fn is_seen(&self, answers: &[bool]) -> bool {
        answers.iter().all(|&is_there| is_there)
    }

    /// Estimates the number of fingerprints and the error rate, from the findings about each of the
    /// [`RedisKind::looked_at`] keys.
    fn estimate(&self, looks: &[KeyLook]) -> Estimate;

    /// Returns the distribution of the bits that keys choose in a string. `None` if the bits alone
    /// do not tell the filter's keys.
    fn cells(&self, _number: u32) -> Option<Cells> {
        None
    }

    /// Returns memory and error rate of a filter of this kind with this number of keys.
    fn outlook(&self, keys: u64) -> Outlook;

    /// Returns the functions that a script calls.
    fn lua(&self) -> String;

    /// Returns Redis's time for an unseen item, in nanoseconds, on a slow machine
    /// (docs/benchmarks.md).
    fn cost(&self) -> usize;

    /// Returns the question about these fingerprints for the functions. `None` is an item that
    /// passes unchecked. All fingerprints have passed [`RedisKind::check`].
    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question;

    /// Returns the commands that the functions run: words and arguments, without the key after the
    /// word.
    fn commands(&self) -> &'static [&'static [&'static str]];

    /// Returns the number of the filter's bits; 0 if it is a set.
    fn bits(&self) -> u64;

    /// Returns the number of bits that a fingerprint sets; 0 if the filter is a set.
    fn hashes(&self) -> u32;

    /// Returns true if the filter is never wrong.
    fn is_exact(&self) -> bool {
        false
    }

    /// Returns the native layout, if the filter has shards.
    fn native(&self) -> Option<Native> {
        None
    }

    /// Builds an empty filter in this process's memory that judges as the scripts do. Returns
    /// `None` if the filter is a set, or its kind can be in memory anyway.
    fn in_memory(&self) -> Option<Box<dyn ScriptFilter>> {
        None
    }

    /// Returns the layout, if the filter has only strings of bits.
    fn strings(&self) -> Option<&(dyn BitStrings + Send + Sync)> {
        None
    }
}

/// Returns the text that other projects hash or keep: the hex digits of a digest; plain text as it
/// is.
pub(crate) fn text(fingerprint: &Fingerprint) -> Cow<'_, [u8]> {
    match fingerprint {
        Fingerprint::Text(text) => Cow::Borrowed(text),
        digest => Cow::Owned(digest.to_string().into_bytes()),
    }
}
