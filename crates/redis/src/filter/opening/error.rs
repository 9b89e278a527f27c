//! Errors of opening a filter in Redis.

use urlseen_filter::{SpecDifference, SpecError};

use super::strings::shown;
use crate::error::LinkError;
use crate::filter::definition;

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
        "Redis holds bits of the filter {} without their definition ({} is missing): the bits \
         cannot be read without their seed. Choose another filter.key, or delete the filter with \
         urlseen storage drop",
        .0, definition::key(.0)
    )]
    Undefined(String),
    /// Redis already has a filter at the key of a new one.
    #[error(
        "Redis holds a filter {0} already: choose another filter.key, or delete that filter with \
         urlseen storage drop and filter.place = \"redis\""
    )]
    Taken(String),
    /// Another program deleted the filter, and made another filter at its key.
    #[error(
        "another program deleted the filter {0} in Redis and made another one in its place; \
         start again to continue with the new filter"
    )]
    Replaced(String),
    /// Redis has no filter at the key.
    #[error("Redis holds no filter {0}; urlseen run makes it")]
    Missing(String),
    /// Redis lacks memory for the full size of the filter.
    #[error(
        "the filter's strings grow by {} more, and the server has no room for that: it uses {} of \
         {} ({what}). Give the server more memory, or give the filter a smaller size",
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
    #[error("{0} in Redis is not what urlseen writes; find the program that changed it")]
    Nonsense(String),
}

/// Problem of one key of a filter.
#[derive(Debug, thiserror::Error)]
#[error("{key} {problem}")]
pub struct KeyError {
    key: String,
    problem: String,
    /// True if the key has another type. Then it belongs to another program.
    pub(super) is_of_another: bool,
}

impl KeyError {
    /// Makes the error of a key of the right type. The problem is the rest of a sentence that
    /// begins with the key.
    pub(super) fn new(key: String, problem: String) -> Self {
        Self { key, problem, is_of_another: false }
    }

    /// Makes the error of a key that has the type `found` instead of the type `needed`.
    pub(super) fn of_type(key: String, needed: &str, found: &str) -> Self {
        let problem = format!(
            "holds a {found}, and this kind has a {needed} there: filter.kind or filter.key is \
             that of another filter"
        );
        Self { key, problem, is_of_another: true }
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
