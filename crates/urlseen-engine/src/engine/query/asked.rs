//! Counts of answered questions, and the kinds of changes that are refused for lack of room.

use serde::{Deserialize, Serialize};

use super::{Answer, Question, Wanted};

/// Counts of answered questions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Questions answered "seen", among those that test or add.
    pub seen: u64,
    /// Questions answered "unseen". An addition among them has added the fingerprint.
    pub unseen: u64,
    /// Questions whose change was refused, because the filter had no room for the change.
    pub full: u64,
    /// Fingerprints that were forgotten, so that they pass again.
    pub forgotten: u64,
}

impl Asked {
    /// Counts all answered questions.
    pub fn all(&self) -> u64 {
        self.seen + self.unseen + self.full + self.forgotten
    }

    /// Adds the counts of another partition.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            seen: self.seen + other.seen,
            unseen: self.unseen + other.unseen,
            full: self.full + other.full,
            forgotten: self.forgotten + other.forgotten,
        }
    }

    pub(super) fn count(&mut self, wanted: Wanted, answer: Answer) {
        *match (wanted, answer) {
            (Wanted::Forget, Answer::Seen) => &mut self.forgotten,
            (Wanted::Forget, Answer::Unseen) => return,
            (_, Answer::Seen) => &mut self.seen,
            (_, Answer::Unseen) => &mut self.unseen,
            (_, Answer::Full) => &mut self.full,
        } += 1;
    }
}

/// Kinds of changes that are refused, because the filter has no room. For a refused change, the
/// fingerprint is only tested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    pub(super) adds: bool,
    pub(super) forgets: bool,
}

impl Refused {
    pub(super) fn without(self, question: &Question) -> Question {
        let Question { wanted, fingerprint } = question.clone();
        let is_refused = match wanted {
            Wanted::Add => self.adds,
            Wanted::Forget => self.forgets,
            Wanted::Test => false,
        };
        Question { wanted: if is_refused { Wanted::Test } else { wanted }, fingerprint }
    }
}
