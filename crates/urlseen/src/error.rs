//! Errors of filters and consumers.

use std::fmt;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Error of a filter or a consumer.
///
/// The text of an error states the failure and the remedy. A program can choose the remedy by
/// [`Error::kind`].
///
/// ```
/// use urlseen::{ErrorKind, FilterSpec, LocalFilter};
///
/// let error = LocalFilter::new(&FilterSpec::native(0, 1e-6)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Spec);
/// assert!(error.to_string().contains("capacity"));
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Source,
}

/// Kind of an [`Error`], by which a program can choose the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A spec, an option or an address is not valid.
    Spec,
    /// The filter does not fit into memory, or the system cannot start a thread for heartbeats.
    Memory,
    /// The folder or the key in Redis has a filter with another spec, or the record of the crawl
    /// has another version. A consumer also returns this kind if the program passes a delivery that
    /// another consumer popped.
    Mismatch,
    /// The filter's [`Kind`](crate::Kind) has no bit positions for a key. For example, some kinds
    /// accept only keys that begin with hex digits.
    Placement,
    /// A crawl has several partitions, and the program passed an item without the fingerprint that
    /// determines its partition.
    NoFingerprint,
    /// No daemon has run for the source of a consumer yet, or for one of its partitions.
    NoCrawl,
    /// A consumer already holds its maximum number of requests, or a push is too large.
    Limit,
    /// The storage folder or its disk failed.
    Storage,
    /// Redis or the connection to Redis failed, and no retry succeeded.
    Redis,
    /// Redis refused a call, and would refuse the call again. Or another program wrote to the keys
    /// of held requests.
    Refused,
}

impl Error {
    pub(super) fn new(kind: ErrorKind, source: impl Into<Source>) -> Self {
        Self { kind, source: source.into() }
    }

    /// Returns the kind of the error.
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
