//! Content of a filter's keys in Redis, and the findings about them.

/// Content of a filter's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A string of the filter's bits.
    Bits {
        /// Bits that can be set, counted from the first.
        bits: u64,
        /// Length in bytes that the string grows to and never exceeds.
        max_bytes: u64,
        /// True if memory for all of it is taken at the start.
        is_reserved: bool,
    },
    /// A set of the fingerprints.
    Members,
    /// A decimal number: the count of added fingerprints.
    Count,
}

impl Content {
    /// Returns the type of the key, as `TYPE` names it.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Bits { .. } | Self::Count => "string",
            Self::Members => "set",
        }
    }

    /// Returns the greatest length in bytes of a string of bits.
    pub fn max_bytes(self) -> Option<u64> {
        match self {
            Self::Bits { max_bytes, .. } => Some(max_bytes),
            Self::Members | Self::Count => None,
        }
    }
}

/// A key that this filter does not have, but others do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Name of the foreign key.
    pub key: String,
    /// Meaning of the key's presence, for people.
    pub why: &'static str,
}

/// A hash in which another project keeps the parameters of its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Redis key of the hash.
    pub key: String,
    /// Fields that a new filter has.
    pub fields: Vec<(&'static str, String)>,
    /// Names of the fields that an existing filter must have with the same values.
    pub fixed: &'static [&'static str],
}

/// Findings about one key.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct KeyLook {
    /// Bytes of a string, members of a set, or value of a counter.
    pub size: u64,
    /// Share of a string's bits that are 1.
    pub fill: f64,
}

/// Estimate of a filter's content from its fill.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Number of fingerprints in the filter.
    pub keys: u64,
    /// Share of unseen fingerprints that the filter calls seen.
    pub error_rate: f64,
}
