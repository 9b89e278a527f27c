//! What is asked of single fingerprints, outside of batches, and what the threads answer.

use std::collections::HashSet;

use super::owner::{Done, Job, Owner};
use super::{Engine, GROUPS_MAX};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{Hashed, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Position;

/// What is wanted of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// To know whether it is seen.
    Test,
    /// To have it seen from now on, and to know whether it was.
    Add,
    /// To have it pass once more, and to know whether it was seen.
    Forget,
}

/// A fingerprint, and what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is wanted.
    pub wanted: Wanted,
    /// Of which fingerprint.
    pub fingerprint: Fingerprint,
}

/// What a thread says to a [`Question`]. Batches in flight count as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was seen. Where it was to be forgotten, it is.
    Seen,
    /// It was not. Where it was to be added, it is.
    Unseen,
    /// It was not and cannot be added, or it was and cannot be forgotten: there is no room.
    Full,
}

/// What one thread answers, to those of a group of questions that are of its own shards.
#[derive(Debug)]
pub struct Answers {
    /// The group.
    pub(crate) group: u64,
    /// Which thread. [`Engine::remember`](super::Engine::remember) wants to know.
    pub(crate) owner: usize,
    /// By place in the group, ascending.
    pub(crate) answers: Vec<(u32, Answer)>,
}

/// The same questions as a thread gets them: by place in the group.
pub(super) type Asked = Vec<(u32, KeyHash, Wanted)>;

impl Engine {
    /// Whether a group of questions may be asked now.
    pub fn has_room_to_ask(&self) -> bool {
        self.asking + self.unremembered < GROUPS_MAX
    }

    /// How many answers are to be waited for.
    pub fn asking(&self) -> usize {
        self.asking
    }

    /// Asks the threads that the questions concern, or all of them, for answers to as many as are
    /// theirs; says how many those threads are.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room_to_ask`]).
    pub fn ask(&mut self, group: u64, questions: &[Question], all: bool) -> usize {
        assert!(self.has_room_to_ask(), "at most {GROUPS_MAX} groups of questions are asked");
        let owners = self.owners.len();
        let mut parts = vec![Asked::new(); owners];
        for (place, Question { wanted, fingerprint }) in (0u32..).zip(questions) {
            let key_hash = self.hasher.key_hash(fingerprint);
            parts[key_hash.shard().owner(owners)].push((place, key_hash, *wanted));
        }
        let mut asked = 0;
        for (owner, part) in parts.into_iter().enumerate() {
            if all || !part.is_empty() {
                self.tell(owner, Job::Ask { group, asked: part });
                asked += 1;
            }
        }
        self.asking += asked;
        asked
    }

    /// What a thread has answered and added is written down: it is to be set. The filter is at `at`
    /// then, if no batch is between log and commit.
    ///
    /// # Panics
    /// If it has answered nothing.
    pub(crate) fn remember(&mut self, owner: usize, at: Option<Position>) {
        let left = self.unremembered.checked_sub(1);
        self.unremembered = left.expect("only what was answered is remembered");
        self.tell(owner, Job::Remember { at });
    }
}

impl Owner {
    /// Answers in order, so that what is asked twice is unseen once. What is added counts as seen
    /// from here on, and is set once it is written down.
    pub(super) fn answer(&mut self, group: u64, asked: &Asked) {
        let key_hashes: Vec<KeyHash> = asked.iter().map(|&(_, key_hash, _)| key_hash).collect();
        let mut verdicts = Vec::new();
        self.filter.test(&key_hashes, &mut verdicts);
        let (mut added, mut forgotten) = (Vec::new(), HashSet::<u128, Hashed>::default());
        let answers = asked.iter().zip(verdicts).map(|(&(place, key_hash, wanted), verdict)| {
            let is_set = verdict == Verdict::Seen && !forgotten.contains(&key_hash.id());
            let is_seen = is_set || self.in_flight.contains(key_hash);
            let answer = match (wanted, is_seen) {
                (Wanted::Forget, true) => {
                    self.in_flight.remove(key_hash);
                    self.filter.forget(key_hash);
                    forgotten.insert(key_hash.id());
                    Answer::Seen
                }
                (Wanted::Add, false) => {
                    self.in_flight.insert(key_hash);
                    if self.filter.reserve(self.in_flight.len()).is_ok() {
                        added.push(key_hash);
                        Answer::Unseen
                    } else {
                        self.in_flight.take_back(key_hash);
                        Answer::Full
                    }
                }
                (Wanted::Test | Wanted::Add, true) => Answer::Seen,
                (Wanted::Test | Wanted::Forget, false) => Answer::Unseen,
            };
            (place, answer)
        });
        let answers = answers.collect();
        self.in_flight.push_group(added);
        let answers = Answers { group, owner: self.number, answers };
        let _ = self.tell.send(Done::Answered(answers));
    }

    /// Sets what the oldest group of questions that is not set yet has added.
    pub(super) fn remember(&mut self, at: Option<Position>) {
        let key_hashes = self.in_flight.pop_group().expect("a group is remembered once answered");
        self.set(key_hashes);
        self.at = at.unwrap_or(self.at);
    }
}
