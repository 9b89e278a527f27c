//! A damaged place in a file of the folder.

use std::io;

/// Damaged place in a file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} at byte {offset}: {what}")]
pub struct Damage {
    /// Name of the file in the folder.
    pub(crate) file: String,
    /// Offset of the first byte that cannot be read.
    pub(crate) offset: u64,
    /// Kind of the damage, for messages.
    pub(crate) what: &'static str,
}

/// Reason why a file of the folder cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Record that a later version wrote.
    #[error("a record is of the unknown kind {kind}")]
    UnknownKind { file: String, offset: u64, kind: u8 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Damage {
    pub(super) fn new(file: impl Into<String>, offset: u64, what: &'static str) -> Self {
        Self { file: file.into(), offset, what }
    }
}

impl ReadError {
    /// Returns the damage, or the error of the disk.
    pub(super) fn damage(self) -> io::Result<Damage> {
        match self {
            Self::Damaged(damage) => Ok(damage),
            Self::UnknownKind { file, offset, .. } => {
                let what = "the record is of a kind that this version does not know";
                Ok(Damage { file, offset, what })
            }
            Self::Io(error) => Err(error),
        }
    }
}

/// Returns `None` in place of an error that reports damage. Returns all other errors unchanged.
pub(super) fn sound<T>(read: Result<T, ReadError>) -> io::Result<Option<T>> {
    read.map_or_else(|error| error.damage().map(|_| None), |read| Ok(Some(read)))
}

/// Returns `None` in place of two errors: damage, and a missing file, which the daemon may have
/// pruned.
pub(super) fn sound_if_there<T>(read: Result<T, ReadError>) -> io::Result<Option<T>> {
    match sound(read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read,
    }
}
