//! Verdict of a filter on a key.

/// Answer of a filter about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The key was never set.
    Unseen,
    /// The key was set. A key that was never set gets this wrong answer at the filter's error rate.
    Seen,
}

impl Verdict {
    /// Returns [`Verdict::Seen`] if all the key's bits are set.
    pub fn of(all_set: bool) -> Self {
        if all_set { Self::Seen } else { Self::Unseen }
    }
}
