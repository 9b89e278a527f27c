//! Where a crawl's history stands: the number and the random id of its last committed batch.

use std::fmt;

/// The number and the id of a committed batch, or of the one about to be.
///
/// The number says how far a history has come, the id which history it is: two that went
/// different ways after a restore agree on a number at most by chance, and on both never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many batches were committed since the crawl's state began.
    pub seq: u64,
    /// The random id of the last of them.
    pub tip: Tip,
}

/// Where a log, or a shard that was brought up to date from one, stands.
///
/// Records of any kind are numbered from 1; only batches move the head. So two positions may share
/// a head and differ in what was added since, and of two on one history the higher number is the
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the last record, 0 before the first.
    pub number: u64,
    /// The last batch at or before that record.
    pub head: Head,
}

/// A batch's random 64-bit id, shown as 16 hex digits; zero before the first batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tip(u64);

impl Position {
    /// Before the first record.
    pub const START: Self = Self { number: 0, head: Head::START };
}

impl Head {
    /// Before the first batch.
    pub const START: Self = Self { seq: 0, tip: Tip(0) };

    /// The head of the batch that follows this one, under a fresh id.
    #[must_use]
    pub fn next(self) -> Self {
        Self { seq: self.seq + 1, tip: Tip::random() }
    }

    /// Reads what [`fmt::Display`] of the two fields wrote.
    pub fn parse(seq: &str, tip: &str) -> Option<Self> {
        Some(Self { seq: seq.parse().ok()?, tip: Tip::parse(tip)? })
    }
}

impl Tip {
    /// A fresh one.
    pub fn random() -> Self {
        Self(random())
    }

    /// Reads 16 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16).map(Self)
    }

    /// The one that [`Tip::get`] gave.
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number, to be kept.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A random number from the system.
pub fn random() -> u64 {
    getrandom::u64().expect("the system has a source of random numbers")
}

impl fmt::Display for Tip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Tip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, {}", self.number, self.head)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {} ({})", self.seq, self.tip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_and_no_two_batches_share_an_id() {
        let head = Head::START.next();
        assert_eq!(head.seq, 1);
        assert_eq!(Head::parse(&head.seq.to_string(), &head.tip.to_string()), Some(head));
        assert_ne!(Head::START.next(), head);
        for (seq, tip) in [("", "0"), ("1", "0"), ("-1", "0000000000000000"), ("1", "g")] {
            assert_eq!(Head::parse(seq, tip), None);
        }
    }
}
