//! Random ids of filters and of committed batches.

use std::fmt;

/// Random 64-bit id, shown as 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RandomId(u64);

impl RandomId {
    /// Draws a fresh random id.
    pub fn random() -> Self {
        Self(random())
    }

    /// Reads an id of 16 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16).map(Self)
    }

    /// Restores an id from the number that [`RandomId::get`] returned.
    pub const fn new(id: u64) -> Self {
        Self(id)
    }

    /// Returns the id as a number, to be stored.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<RandomId> for String {
    fn from(id: RandomId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for RandomId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not 16 hex digits")
    }
}

/// Draws a random number from the system.
pub fn random() -> u64 {
    getrandom::u64().expect("the system has a source of random numbers")
}

impl fmt::Display for RandomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
