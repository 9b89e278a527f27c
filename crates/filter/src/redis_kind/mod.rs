//! Filters in Redis, which other programs can share: their Redis keys, the bit positions of
//! fingerprints, and the Lua functions that test and add items.

mod keys;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use urlseen_fingerprint::Fingerprint;

pub(super) use self::keys::Asked;
pub use self::keys::{Question, RedisFilterKeys};
use super::Outlook;
use crate::peers::bit_strings::{BitPosition, PlacementError};
pub(super) use crate::peers::strings::BIT;

/// A command and its arguments.
pub(crate) type Command = Vec<Vec<u8>>;

/// A filter in Redis, of one kind and with its parameters.
///
/// Each kind has two functions in Lua: `filter_refusal(keys)` and `judge(keys, places, first, last,
/// first_extra)`. All kinds use these two names. `judge` returns the items to emit, the number of
/// unseen items among them, and a function that adds the unseen items to the filter. In a script,
/// the functions come after `COMMON`. Every check that can fail runs before items are added.
pub trait RedisKind: fmt::Debug + Send + Sync {
    /// Returns the numbers of the Redis keys that can have content, in order, with their content.
    fn keys(&self) -> Vec<(u32, Content)>;

    /// Returns the name of a Redis key by its number. `base` is the filter's name in the project's
    /// settings.
    fn key(&self, base: &str, number: u32) -> String;

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

    /// Returns true if the answers to [`RedisFilterKeys::ask`] mean that a fingerprint is seen.
    /// Each answer is true if all bits or members of its command are there.
    fn is_seen(&self, answers: &[bool]) -> bool {
        answers.iter().all(|&is_there| is_there)
    }

    /// Estimates the number of fingerprints and the error rate, from the size and the fill of each
    /// key; only of the counts, if there are any.
    fn estimate(&self, looks: &[KeyLook]) -> Estimate;

    /// Returns memory and error rate of a filter of this kind with this number of keys.
    fn outlook(&self, keys: u64) -> Outlook;

    /// Returns the Lua functions of the kind, which a script calls.
    fn script(&self) -> KindScript;

    /// Returns the question about these fingerprints for the Lua functions. `None` stands for an
    /// item that passes unchecked. All fingerprints must have passed [`RedisKind::check`].
    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question;

    /// Returns the number of the string that gets the bits of the next fingerprint, after this
    /// number of fingerprints. `None` if the bits of a fingerprint are in all of its strings.
    fn newest(&self, _keys: u64) -> Option<u32> {
        None
    }
}

/// Lua functions of a kind.
#[derive(Debug, Clone)]
pub struct KindScript {
    /// Text of the functions.
    pub lua: String,
    /// Time that Redis takes for an unseen item on a slow machine, in nanoseconds.
    pub(super) cost: usize,
    /// Redis commands that the functions run: each command's words and arguments, without its key.
    pub commands: &'static [&'static [&'static str]],
}

/// Returns the text that other projects hash or store: the hex digits of a digest, or plain text
/// unchanged.
pub(crate) fn text(fingerprint: &Fingerprint) -> Cow<'_, [u8]> {
    match fingerprint {
        Fingerprint::Text(text) => Cow::Borrowed(text),
        digest => Cow::Owned(digest.to_string().into_bytes()),
    }
}

/// Expected content of a Redis key of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A string of the filter's bits.
    Bits {
        /// Number of bits at the start of the string that can be set.
        bits: u64,
        /// True if the string gets its maximum length before the first commit.
        is_reserved: bool,
        /// Number of bits at the start of the string that uneven hashes crowd, so that a comparison
        /// leaves them out. `None` if the bits alone do not give the number of fingerprints that
        /// two filters share.
        crowded: Option<u64>,
    },
    /// Redis set whose members are the fingerprints.
    Members,
    /// A decimal number: the count of added fingerprints.
    Count,
}

impl Content {
    /// Returns the name of the Redis type, as `TYPE` returns it.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Bits { .. } | Self::Count => "string",
            Self::Members => "set",
        }
    }

    /// Returns the maximum length in bytes of a string of bits; `None` for other content.
    pub fn max_bytes(self) -> Option<u64> {
        match self {
            Self::Bits { bits, .. } => Some(bits.div_ceil(8)),
            Self::Members | Self::Count => None,
        }
    }

    /// Returns the number of crowded bits; `None` if two filters cannot be compared by the content.
    pub fn crowded(self) -> Option<u64> {
        if let Self::Bits { crowded, .. } = self { crowded } else { None }
    }
}

/// Redis key that only filters of other sizes or variants have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Name of the foreign key.
    pub key: String,
    /// Text for the user: what it means if a key with this name exists.
    pub why: &'static str,
}

/// Redis hash in which another project keeps the parameters of its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Redis key of the hash.
    pub key: String,
    /// Fields of a new filter, with their values.
    pub fields: Vec<(&'static str, String)>,
    /// Number of the first fields, whose values an existing filter must also have.
    pub fixed: usize,
}

/// Present size and fill of one Redis key of a filter.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct KeyLook {
    /// Bytes of a string, members of a set, or the value of a counter.
    pub size: u64,
    /// Share of a string's bits that are 1.
    pub fill: f64,
}

/// Estimate of a filter's content, made from the sizes and fills of its keys.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Number of fingerprints in the filter.
    pub keys: u64,
    /// Share of unseen fingerprints that the filter reports as seen.
    pub error_rate: f64,
}
