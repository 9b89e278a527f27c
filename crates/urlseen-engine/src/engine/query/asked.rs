//! What was asked so far, and what of it there is no room for.

use serde::{Deserialize, Serialize};

use crate::engine::{Answer, Question, Wanted};

/// Questions answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// With "seen", where that was all that was wanted, or it was to be added.
    pub seen: u64,
    /// With "unseen"; those that were to be added are.
    pub unseen: u64,
    /// With "there is no room".
    pub full: u64,
    /// Fingerprints that are to pass once more.
    pub forgotten: u64,
}

impl Asked {
    /// How many that are.
    pub fn all(&self) -> u64 {
        self.seen + self.unseen + self.full + self.forgotten
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

/// What of a group of questions is only looked up, as there is no room for it.
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
