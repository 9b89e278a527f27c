//! Errors of opening a filter in Redis.

use super::strings::shown;
use crate::filter::{SpecDifference, SpecError};
use crate::redis::error::LinkError;

/// Reason why a filter in Redis cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RedisOpenError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The kind cannot have the configured parameters.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The filter was made with other parameters.
    #[error(
        "the filter {key} in Redis was made for something else:\n{}\nRestore these settings, \
         choose another filter.key, or delete the filter with urlseen storage drop",
        list(differences)
    )]
    Differs {
        /// Value of `filter.key`.
        key: String,
        /// Parameters that differ.
        differences: Vec<SpecDifference>,
    },
    /// The filter's keys hold other data.
    #[error("the keys in Redis are not a filter of this kind and size:\n{}", list(.0))]
    Keys(Vec<KeyError>),
    /// Redis has the bits of a filter, but not its definition. So no program can read the bits.
    #[error(
        "Redis holds bits of the filter {key} without their definition ({definition} is missing): \
         the bits cannot be read without their seed. Choose another filter.key, or delete the \
         filter with urlseen storage drop"
    )]
    Undefined {
        /// Value of `filter.key`.
        key: String,
        /// Missing key of the definition.
        definition: String,
    },
    /// An export to the filter was interrupted.
    #[error(
        "the filter {0} in Redis is incomplete: an export to it was interrupted. Give the same \
         command again, or delete the incomplete filter with urlseen storage drop"
    )]
    Unfinished(String),
    /// Redis already has a filter at the key of a new one.
    #[error(
        "Redis holds a filter {0} already: choose another filter.key, or delete that filter with \
         urlseen storage drop and filter.place = \"redis\""
    )]
    Taken(String),
    /// Another program deleted the filter, and made another filter at its key.
    #[error(
        "another program deleted the filter {0} in Redis and made another one in its place; \
         start again to continue with that"
    )]
    Replaced(String),
    /// Redis has no filter at the key.
    #[error("Redis holds no filter {0}; urlseen run makes it")]
    Missing(String),
    /// Redis lacks memory for the full size of the filter.
    #[error(
        "the filter's strings grow by {} more, and the server has no room for that: it uses {} of \
         {} ({what}). Give it more memory, or the filter a smaller size",
        shown(*needed), shown(*used), shown(*room)
    )]
    NoRoom {
        /// Number of bytes by which the filter's strings still grow.
        needed: u64,
        /// Name of the limit that the strings would exceed.
        what: &'static str,
        /// The exceeded limit, in bytes.
        room: u64,
        /// Bytes that Redis uses now.
        used: u64,
    },
    /// The definition in Redis cannot be read.
    #[error("{0} in Redis is not what urlseen wrote there; find out who did")]
    Nonsense(String),
}

/// Problem of one key of a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key has another type.
    #[error(
        "{key} holds a {found}, and this kind has a {needed} there: filter.kind or filter.key \
         is that of another filter"
    )]
    Type {
        /// Key with the other type.
        key: String,
        /// The type that it must have.
        needed: &'static str,
        /// The type that it has now.
        found: String,
    },
    /// The string is longer than its maximum for this kind.
    #[error(
        "{key} is {length} bytes long, and a filter of this kind and size never has more than \
         {most} there: it was made with another capacity, error rate or bit"
    )]
    TooLong {
        /// Key of the long string.
        key: String,
        /// Length that the string has.
        length: u64,
        /// Maximum length of the string.
        most: u64,
    },
    /// The key exists, and only filters of other sizes or variants have such a key.
    #[error("{key} is there, {why}")]
    Foreign {
        /// Key of the other filter.
        key: String,
        /// Meaning of an existing key with this name, for people.
        why: &'static str,
    },
    /// The key holds no number.
    #[error(
        "{key} holds {found:?}, and this kind has a counter there: filter.key is that of another \
         filter"
    )]
    NoCount {
        /// Key that should hold a counter.
        key: String,
        /// Value that the key holds.
        found: String,
    },
    /// The hash with the filter's parameters states another size.
    #[error(
        "{key} says that {field} is {found}, and the configuration needs {wanted}: the filter was \
         made with another capacity or error rate"
    )]
    Record {
        /// Key of the hash with the parameters.
        key: String,
        /// Field that has another value.
        field: &'static str,
        /// Value that the field has.
        found: String,
        /// The value that it must have.
        wanted: String,
    },
    /// The filter has bits, but the hash with its parameters is missing.
    #[error(
        "{key} is missing, in which the filter's project keeps the parameters, but the bits of the \
         filter exist: their meaning is not known. Delete the bits, or choose another filter.key"
    )]
    NoRecord {
        /// Key of the missing hash.
        key: String,
    },
}

impl KeyError {
    /// Returns true if the key has another type. Then it belongs to another program.
    pub(super) fn is_of_another(&self) -> bool {
        matches!(self, Self::Type { .. })
    }
}

impl RedisOpenError {
    /// Returns true if the configuration is wrong.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::Spec(_) | Self::Differs { .. })
    }
}

/// Writes one item on each line.
fn list(all: &[impl std::fmt::Display]) -> String {
    all.iter().map(|it| format!("  {it}")).collect::<Vec<_>>().join("\n")
}
