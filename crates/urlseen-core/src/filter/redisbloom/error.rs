//! What can be wrong with a filter of RedisBloom.

/// A chunk that cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "chunk {chunk} of the RedisBloom filter, byte {offset}: {problem}; dump the filter again with \
     BF.SCANDUMP and pass on every chunk, in order"
)]
pub struct ChunkError {
    /// Its number, from 0, which is the header.
    pub(crate) chunk: u64,
    /// The byte of it that the trouble begins with.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) problem: FormatError,
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum FormatError {
    /// The iterator is not the one that is due.
    #[error(
        "its iterator is {found}, and {due} is due: chunks are missing, doubled or out of order"
    )]
    Iterator {
        /// What it came with.
        found: i64,
        /// What it has to come with.
        due: i64,
    },
    /// No header is as long.
    #[error("the header has {found} bytes; it has 20, and 53 for each of one or more layers")]
    HeaderLength {
        /// Its bytes.
        found: usize,
    },
    /// The header is of a server whose hashes are others.
    #[error(
        "16 bytes follow the layers: the server hashes with a bf-hash-seed of its own, and only \
         filters without one can be read"
    )]
    Seeded,
    /// A number in the header that no filter has.
    #[error("the {field} is {found}; {allowed}")]
    Field {
        /// What it is.
        field: &'static str,
        /// The number.
        found: Number,
        /// What it may be.
        allowed: &'static str,
    },
    /// The filter is larger than the caller allows.
    #[error("the layers take over {limit} bytes, the limit that is set for them")]
    TooLarge {
        /// The most bytes allowed.
        limit: u64,
    },
    /// The chunk has nothing in it.
    #[error("it is empty")]
    Empty,
    /// The chunk goes over the end of a layer, or of the filter.
    #[error("it has {found} bytes, and only {left} of its layer are left")]
    TooLong {
        /// Its bytes.
        found: usize,
        /// The bytes that are due.
        left: u64,
    },
    /// The filter is not whole.
    #[error("it is missing: {left} bytes of the filter have not come")]
    Missing {
        /// The bytes that are due.
        left: u64,
    },
    /// The system gave no memory.
    #[error("the system gave no memory for {bytes} more bytes of the filter")]
    Memory {
        /// The bytes asked for.
        bytes: usize,
    },
}

impl ChunkError {
    /// Returns true if the system gave no memory for it.
    pub(crate) fn is_for_want_of_memory(&self) -> bool {
        matches!(self.problem, FormatError::Memory { .. })
    }
}

/// A number found in a header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A count or a length.
    Whole(u64),
    /// A rate.
    Real(f64),
    /// Flags.
    Flags(u32),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => write!(f, "{number:e}"),
            Self::Flags(flags) => write!(f, "{flags:#x}"),
        }
    }
}

/// A filter that cannot be reserved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReserveError {
    /// The error rate is none.
    #[error("the error rate {0:e} of a RedisBloom filter does not lie between 0 and 1")]
    ErrorRate(f64),
    /// No layer is made for no item.
    #[error("the capacity 0 of a RedisBloom filter holds no item; give at least 1")]
    Capacity,
    /// No layer grows by that.
    #[error("the expansion 0 of a RedisBloom filter makes no layer; give at least 1, or none")]
    Expansion,
    /// It takes more memory than is allowed, or than can be addressed.
    #[error("a RedisBloom layer for {capacity} items takes over {limit} bytes, the limit set")]
    TooLarge {
        /// Its items.
        capacity: u64,
        /// The most bytes allowed.
        limit: u64,
    },
    /// The system gave no memory.
    #[error("the system gave no {bytes} bytes of memory for a RedisBloom layer")]
    Memory {
        /// The bytes asked for.
        bytes: u64,
    },
}

/// An item that cannot be added. The filter is as it was.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AddError {
    /// The filter is full and was reserved with `NONSCALING`.
    #[error(
        "the RedisBloom filter holds the {0} items that it was reserved for, and it is not to \
         grow (NONSCALING); reserve a larger one"
    )]
    Full(u64),
    /// The filter is full and no layer can follow.
    #[error("the RedisBloom filter is full and cannot grow: {0}")]
    NoLayer(ReserveError),
}
