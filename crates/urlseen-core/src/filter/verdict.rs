//! Verdict of a filter on a key.

/// The answer of a URL-seen test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The key was certainly never set.
    Unseen,
    /// The key was set, or the filter takes it for seen wrongly, at its error rate.
    Seen,
}

impl Verdict {
    /// Returns [`Verdict::Seen`] if all the key's bits are set.
    pub fn of(all_set: bool) -> Self {
        if all_set { Self::Seen } else { Self::Unseen }
    }
}
