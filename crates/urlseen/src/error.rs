//! Errors of filters and consumers.

use std::fmt;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a filter or a consumer could not do what it was asked to. Its text says what failed
/// and what to do now; [`Error::kind`] says whose turn it is.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Source,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No filter or consumer can be what was asked for: a capacity, an error rate, a setting of a
    /// kind, an option, an address.
    Spec,
    /// The filter does not fit into memory, or the system has no thread for a heartbeat.
    Memory,
    /// There is a filter, and it was made for something else; or a crawl, and its record is of
    /// another version.
    Mismatch,
    /// The kind has no place for a key; see [`FilterKind`](crate::FilterKind).
    Placement,
    /// No daemon has run for the source of a consumer yet.
    NoCrawl,
    /// A consumer holds as many requests as it may, or a push is larger than it may be.
    Limit,
    /// The storage folder failed, or the disk that it is on.
    Storage,
    /// Redis failed, or the way to it, and it did not help to try again.
    Redis,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, source: impl Into<Source>) -> Self {
        Self { kind, source: source.into() }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}
