//! Questions about single fingerprints, outside of batches, and the answers of the owners.

use std::collections::{HashSet, VecDeque};

use super::batches::Batches;
use super::in_flight::ByLifetime;
use super::owner::{Done, Job, Owner};
use super::{Engine, GROUPS_MAX};
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{Hashed, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Position;

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

/// Answer of an owner to a [`Question`]. Fingerprints of batches in flight count as seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The fingerprint was seen. A [`Wanted::Forget`] has forgotten the fingerprint.
    Seen,
    /// The fingerprint was unseen. A [`Wanted::Add`] has added the fingerprint.
    Unseen,
    /// The filter has no room for the fingerprint, or there are too many tombstones to forget it.
    Full,
}

/// Answers of one owner to its part of a question group: the questions whose keys are in the
/// owner's shards.
#[derive(Debug)]
pub struct Answers {
    pub(crate) group: u64,
    /// Number of the owner, for [`Engine::remember`](super::Engine::remember).
    pub(crate) owner: usize,
    /// Number of the next batch that the owner was to judge when it answered.
    pub(super) before: u64,
    /// Answers, each with the place of its question in the group, in ascending order.
    pub(crate) answers: Vec<(u32, Answer)>,
}

/// Questions for one owner, each with its place in the group.
pub(super) type Asked = Vec<(u32, KeyHash, Wanted)>;

/// State of the question groups that were sent to the owners. Each owner gets one part of a
/// group.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Answers that are not handed back yet, in the order in which the owners answered.
    pub(super) answers: VecDeque<Answers>,
    /// Number of parts whose answers are not handed back yet.
    asked: usize,
    /// Number of parts whose answers were handed back and whose added keys are not yet set in the
    /// filter.
    unremembered: usize,
}

impl Asking {
    /// Hands back the oldest answers before which no batch is due. The log must have batches and
    /// answers in the order in which an owner judged and answered. Otherwise a recovery would set a
    /// key of a batch in flight that was then forgotten.
    pub(super) fn hand_back(&mut self, batches: &Batches) -> Option<Answers> {
        let is_due = |answers: &Answers| batches.are_handed_back(answers.before);
        let place = self.answers.iter().position(is_due)?;
        let answers = self.answers.remove(place)?;
        self.asked -= 1;
        self.unremembered += 1;
        Some(answers)
    }
}

impl Engine {
    /// Returns true if a group of questions may be asked now.
    pub fn has_room_to_ask(&self) -> bool {
        self.asking.asked + self.asking.unremembered < GROUPS_MAX
    }

    /// Counts the owners' answers that are not handed back yet.
    pub fn asking(&self) -> usize {
        self.asking.asked
    }

    /// Sends each owner the questions whose keys are in its shards. Returns the number of owners
    /// that got questions.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room_to_ask`]).
    pub fn ask(&mut self, group: u64, questions: &[Question]) -> usize {
        assert!(self.has_room_to_ask(), "fewer than {GROUPS_MAX} parts of groups wait");
        let owners = self.handle.owners.len();
        let mut parts = vec![Asked::new(); owners];
        for (place, Question { wanted, fingerprint }) in (0u32..).zip(questions) {
            let key_hash = self.handle.hasher.key_hash(fingerprint);
            parts[key_hash.shard().owner(owners)].push((place, key_hash, *wanted));
        }
        let mut count = 0;
        for (owner, asked) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            self.handle.tell(owner, Job::Ask { group, asked });
            count += 1;
        }
        self.asking.asked += count;
        count
    }

    /// Makes an owner set the keys that its oldest answers added. The log must contain these keys
    /// already, in this generation. `at` is the position of the filter after this. Pass `None`
    /// while a logged batch is not committed.
    ///
    /// # Panics
    /// If no answers of the owner wait for this call.
    pub(crate) fn remember(&mut self, owner: usize, generation: Generation, at: Option<Position>) {
        let left = self.asking.unremembered.checked_sub(1);
        self.asking.unremembered = left.expect("additions are set after they were answered");
        if let Some(at) = at {
            self.handle.counts().stand(at);
        }
        self.handle.tell(owner, Job::Remember { generation, at });
    }
}

impl Owner {
    /// Answers the questions in order, so a fingerprint that a group adds twice is unseen only
    /// once. Added fingerprints count as seen immediately. They are set in the filter after the log
    /// has them, or at once if the kind requires it. Then a snapshot may have an addition that the
    /// log lacks, if the process is killed before the client gets its answer.
    pub(super) fn answer(&mut self, group: u64, asked: &Asked) {
        let key_hashes: Vec<KeyHash> = asked.iter().map(|&(_, key_hash, _)| key_hash).collect();
        let mut verdicts = Vec::new();
        self.filter.test(&key_hashes, &mut verdicts);
        let at_once = self.filter.kind().inserts_at_once();
        let mut forgotten = HashSet::<u128, Hashed>::default();
        self.in_flight.groups.push_back(ByLifetime::default());
        let answers = asked.iter().zip(verdicts).map(|(&(place, key_hash, wanted), verdict)| {
            let is_set = if at_once {
                self.has(key_hash)
            } else {
                verdict == Verdict::Seen && !forgotten.contains(&key_hash.id())
            };
            let is_seen = is_set || self.in_flight.contains(key_hash);
            let answer = match (wanted, is_seen) {
                (Wanted::Forget, true) => {
                    self.in_flight.forget(key_hash);
                    self.filter.forget(key_hash);
                    forgotten.insert(key_hash.id());
                    Answer::Seen
                }
                (Wanted::Add, false) => {
                    self.in_flight.insert(key_hash);
                    let keys = self.in_flight.in_shard(key_hash.shard());
                    if self.filter.make_room(key_hash.shard(), keys).is_err() {
                        self.in_flight.remove(key_hash);
                        Answer::Full
                    } else if at_once {
                        self.in_flight.remove(key_hash);
                        let set = self.filter.insert(&[key_hash]);
                        set.expect("there is room");
                        Answer::Unseen
                    } else {
                        let group = self.in_flight.groups.back_mut().expect("a group");
                        group.push(Lifetime::WHOLE, key_hash);
                        Answer::Unseen
                    }
                }
                (Wanted::Test | Wanted::Add, true) => Answer::Seen,
                (Wanted::Test | Wanted::Forget, false) => Answer::Unseen,
            };
            (place, answer)
        });
        let answers = answers.collect();
        let answers = Answers { group, owner: self.number, before: self.next_batch, answers };
        let _ = self.tell.send(Done::Answered(answers));
    }

    /// Returns true if the filter has a key now.
    fn has(&mut self, key_hash: KeyHash) -> bool {
        let mut verdicts = Vec::new();
        self.filter.test(&[key_hash], &mut verdicts);
        verdicts == [Verdict::Seen]
    }

    /// Sets the keys that the oldest answered group added.
    pub(super) fn remember(&mut self, generation: Generation, at: Option<Position>) {
        let added = self.in_flight.groups.pop_front();
        self.set(&added.expect("additions are set after the answer"), generation);
        self.at = at.unwrap_or(self.at);
    }
}
