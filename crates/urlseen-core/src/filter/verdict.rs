//! What the filter says of a key.

/// The answer of a URL-seen test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Surely never set before: a filter forgets nothing.
    Unseen,
    /// Set before, or wrongly taken for it, at the filter's error rate.
    Seen,
}

impl Verdict {
    /// [`Verdict::Seen`] if all the key's bits are set.
    pub fn of(all_set: bool) -> Self {
        if all_set { Self::Seen } else { Self::Unseen }
    }
}
