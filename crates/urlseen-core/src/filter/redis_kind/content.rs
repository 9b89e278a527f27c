//! What the keys of a filter in Redis hold, and what a look at them tells.

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A string of bits.
    Bits {
        /// How many can be set, counted from the first.
        bits: u64,
        /// The length in bytes that it grows to and never exceeds.
        max_bytes: u64,
        /// True if memory for all of it is taken at the start.
        is_reserved: bool,
    },
    /// A set of fingerprints.
    Members,
    /// A decimal number: how many fingerprints were added.
    Count,
}

impl Content {
    /// The type of the key, as `TYPE` names it.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Bits { .. } | Self::Count => "string",
            Self::Members => "set",
        }
    }

    /// The length in bytes that a string of bits grows to.
    pub fn max_bytes(self) -> Option<u64> {
        match self {
            Self::Bits { max_bytes, .. } => Some(max_bytes),
            Self::Members | Self::Count => None,
        }
    }
}

/// A key that a filter does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The key.
    pub key: String,
    /// What it says of the filter that is there.
    pub why: &'static str,
}

/// A hash beside a filter, in which its project keeps what it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The key of the hash.
    pub key: String,
    /// Its fields, as a new filter has them.
    pub fields: Vec<(&'static str, String)>,
    /// The fields that must be like that in a filter that is there.
    pub fixed: &'static [&'static str],
}

/// What was seen of a key.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct KeyLook {
    /// The length of a string in bytes, the members of a set, or the number.
    pub size: u64,
    /// The share of a string's bits that are 1.
    pub fill: f64,
}

/// What is known of a filter from how full it is.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Fingerprints in it.
    pub keys: u64,
    /// The share of unseen ones that it calls seen.
    pub error_rate: f64,
}
