//! Why a filter in Redis cannot be worked with.

use super::strings::shown;
use crate::filter::{SpecDifference, SpecError};
use crate::redis::error::LinkError;

/// Why a filter in Redis cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum RedisOpenError {
    /// Redis, or the way to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There can be no such filter.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It was made for something else.
    #[error(
        "the filter {key} in Redis was made for something else:\n{}\nSet that back, choose another \
         filter.key, or delete the filter with urlseen storage drop",
        list(differences)
    )]
    Differs {
        /// `filter.key`.
        key: String,
        /// In what.
        differences: Vec<SpecDifference>,
    },
    /// What its keys hold is something else.
    #[error("what Redis holds is not a filter of this kind and size:\n{}", list(.0))]
    Keys(Vec<KeyError>),
    /// Bits whose spec is gone, so that they cannot be read any more.
    #[error(
        "Redis holds bits of the filter {key}, and not what they were made with ({definition} is \
         gone): they cannot be read without their seed. Choose another filter.key, or delete the \
         filter with urlseen storage drop"
    )]
    Undefined {
        /// `filter.key`.
        key: String,
        /// The key that is gone.
        definition: String,
    },
    /// A filter that is only partly there.
    #[error(
        "the filter {key} in Redis is not all there: an export to it was broken off. Give the same \
         command again, or delete what is there with urlseen storage drop"
    )]
    Unfinished {
        /// `filter.key`.
        key: String,
    },
    /// A filter where another is to go.
    #[error(
        "Redis holds a filter {key} already: choose another filter.key, or delete that one with \
         urlseen storage drop and filter.place = \"redis\""
    )]
    Taken {
        /// `filter.key`.
        key: String,
    },
    /// Another program made another filter in its place.
    #[error(
        "another program deleted the filter {key} in Redis and made another one in its place; \
         start again to continue with that"
    )]
    Replaced {
        /// `filter.key`.
        key: String,
    },
    /// There is no such filter.
    #[error("Redis holds no filter {key}; urlseen run makes it")]
    Missing {
        /// `filter.key`.
        key: String,
    },
    /// Redis lacks memory.
    #[error(
        "the filter's strings grow by {} more, and the server has no room for that: it uses {} of \
         {} ({what}). Give it more memory, or the filter a smaller size",
        shown(*needed), shown(*used), shown(*room)
    )]
    NoRoom {
        /// Bytes.
        needed: u64,
        /// What bounds it.
        what: &'static str,
        /// That bound, in bytes.
        room: u64,
        /// Bytes in use.
        used: u64,
    },
    /// What was recorded of it cannot be read.
    #[error("{0} in Redis is not what urlseen wrote there; find out who did")]
    Nonsense(String),
}

/// A key of a filter that holds something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Another type.
    #[error(
        "{key} holds a {found}, and this kind has a {needed} there: filter.kind or filter.key \
         is another one's"
    )]
    Type {
        /// The key.
        key: String,
        /// The type that it must have.
        needed: &'static str,
        /// The type that it has.
        found: String,
    },
    /// More bytes than the kind ever writes.
    #[error(
        "{key} is {length} bytes long, and a filter of this kind and size never has more than \
         {most} there: it was made with another capacity, error rate or bit"
    )]
    TooLong {
        /// The key.
        key: String,
        /// Its length.
        length: u64,
        /// The longest that it can be.
        most: u64,
    },
    /// A key of another filter.
    #[error("{key} is there, {why}")]
    Foreign {
        /// The key.
        key: String,
        /// What that says.
        why: &'static str,
    },
    /// Something else than a number.
    #[error("{key} holds {found:?}, and this kind counts there: filter.key is another one's")]
    NoCount {
        /// The key.
        key: String,
        /// What it holds.
        found: String,
    },
    /// A record of another size.
    #[error(
        "{key} says that {field} is {found}, and it is {wanted} for what is configured: the \
         filter was made with another capacity or error rate"
    )]
    Record {
        /// The key.
        key: String,
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The value that it must have.
        wanted: String,
    },
    /// Bits without a record.
    #[error(
        "{key} is not there, in which the filter's project keeps what it was made for, and its \
         bits are: their meaning is not known. Delete them, or choose another filter.key"
    )]
    NoRecord {
        /// The key.
        key: String,
    },
}

impl KeyError {
    /// Returns true if the key belongs to another program: it has another type, not another size.
    pub(super) fn is_of_another(&self) -> bool {
        matches!(self, Self::Type { .. })
    }
}

impl RedisOpenError {
    /// Whether the configuration is what is wrong.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::Spec(_) | Self::Differs { .. })
    }
}

/// One a line.
fn list(all: &[impl std::fmt::Display]) -> String {
    all.iter().map(|it| format!("  {it}")).collect::<Vec<_>>().join("\n")
}
