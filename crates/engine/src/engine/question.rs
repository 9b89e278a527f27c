//! Questions about single fingerprints, outside of batches, and their answers.

use urlseen_fingerprint::Fingerprint;

/// Operation that a client wants for a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Report whether the fingerprint was seen.
    Test,
    /// Report whether the fingerprint was seen, and add it.
    Add,
    /// Report whether the fingerprint was seen, and let it pass again.
    Forget,
}

/// Operation for one fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Operation that the client wants.
    pub wanted: Wanted,
    /// Fingerprint that the operation is for.
    pub fingerprint: Fingerprint,
}

/// Answer to a [`Question`]. Fingerprints of batches in flight count as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The fingerprint was seen. A [`Wanted::Forget`] has forgotten the fingerprint.
    Seen,
    /// The fingerprint was unseen. A [`Wanted::Add`] has added the fingerprint.
    Unseen,
    /// The filter has no room for the fingerprint, or there are too many tombstones to forget it.
    Full,
}

/// Answers to a group of questions, in their order.
#[derive(Debug)]
pub struct Answers {
    pub(crate) group: u64,
    pub(crate) answers: Vec<Answer>,
}
