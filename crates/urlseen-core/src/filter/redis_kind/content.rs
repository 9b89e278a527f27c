//! Expected content of a filter's keys in Redis, and their present size and fill.

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
    /// Names of the fields whose values an existing filter must also have.
    pub fixed: &'static [&'static str],
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
