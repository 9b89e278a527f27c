//! Questions about single fingerprints, outside of batches, and the answers of the judge.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::judge::{ByLifetime, Judge};
use crate::engine::question::{Answer, Answers, Question, Wanted};
use crate::engine::queue::Heard;
use crate::engine::{Engine, GROUPS_MAX, Handle};
use urlseen_filter::Generation;
use urlseen_filter::{Effort, Hashed, KeyHash, Lifetime, Verdict};
use urlseen_storage::{Logged, Position};

impl Engine {
    /// Returns true if a group of questions may be asked now.
    pub fn has_room_to_ask(&self) -> bool {
        self.groups < GROUPS_MAX
    }

    /// Asks a group of questions. The answers come in the order of the groups.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room_to_ask`]).
    pub(crate) fn ask(&mut self, group: u64, questions: &[Question]) {
        assert!(self.has_room_to_ask(), "fewer than {GROUPS_MAX} groups wait");
        self.groups += 1;
        let Handle { hasher, queue, .. } = &self.handle;
        let asked = questions.iter().map(|it| (hasher.key_hash(&it.fingerprint), it.wanted));
        let asked: Vec<(KeyHash, Wanted)> = asked.collect();
        let shards: Vec<_> = asked.iter().map(|(key_hash, _)| key_hash.shard()).collect();
        let is_short = |judge: &mut Judge| judge.has_room_for(shards.into_iter());
        let results = Arc::clone(queue);
        queue.add_or_do(is_short, move |judge| {
            results.tell(Ok(Heard::Answers(Answers { group, answers: judge.answer(&asked) })));
        });
    }

    /// Sets the keys that the oldest answers added. `logged` is the end of the log after them;
    /// `None` if the log does not have them.
    ///
    /// # Panics
    /// If no answers wait for this call.
    pub(crate) fn remember(&mut self, logged: Option<Logged>) {
        let generation = logged.map_or(self.generation, |logged| logged.generation);
        // Batches that are logged and not committed are not in the filter, although their positions
        // are lower than that of `logged`. So if there are such batches, the filter is not there.
        let at = logged.map(|logged| logged.at).filter(|_| self.uncommitted == 0);
        self.groups =
            self.groups.checked_sub(1).expect("additions are set after they were answered");
        let remember = move |judge: &mut Judge| judge.remember(generation, at);
        self.handle.queue.add_or_do(Judge::is_memory_short, remember);
    }
}

/// Questions in the order of their groups, among the batches.
impl Judge {
    /// Answers the questions in order, so a fingerprint that a group adds twice is unseen only
    /// once. Added fingerprints count as seen immediately. They are set in the filter after the log
    /// has them, or at once if the kind requires it. Then a snapshot may have an addition that the
    /// log lacks, if the process is killed before the client gets its answer.
    fn answer(&mut self, asked: &[(KeyHash, Wanted)]) -> Vec<Answer> {
        let key_hashes: Vec<KeyHash> = asked.iter().map(|&(key_hash, _)| key_hash).collect();
        let verdicts = self.test(&key_hashes);
        let at_once = self.inserts_at_once;
        let mut forgotten = HashSet::<u128, Hashed>::default();
        self.in_flight.groups.push_back(ByLifetime::default());
        let answers = asked.iter().zip(verdicts).map(|(&(key_hash, wanted), verdict)| {
            let is_set = if at_once {
                self.test(&[key_hash]) == [Verdict::Seen]
            } else {
                verdict == Verdict::Seen && !forgotten.contains(&key_hash.id())
            };
            match (wanted, is_set || self.in_flight.contains(key_hash)) {
                (Wanted::Forget, true) => {
                    self.in_flight.forget(key_hash);
                    self.filter.forget(key_hash);
                    forgotten.insert(key_hash.id());
                    Answer::Seen
                }
                (Wanted::Add, false) => self.add(key_hash, at_once),
                (Wanted::Test | Wanted::Add, true) => Answer::Seen,
                (Wanted::Test | Wanted::Forget, false) => Answer::Unseen,
            }
        });
        answers.collect()
    }

    /// Adds an unseen key to the last group of questions, or to the filter.
    fn add(&mut self, key_hash: KeyHash, at_once: bool) -> Answer {
        self.in_flight.insert(key_hash);
        let keys = self.in_flight.in_shard(key_hash.shard());
        let room = self.filter.kind().reserve(key_hash.shard(), keys, Effort::Any);
        if room.is_err() || at_once {
            self.in_flight.remove(key_hash);
        }
        if room.is_err() {
            return Answer::Full;
        }
        if at_once {
            self.filter.insert(Generation::FOREVER, &[key_hash]).expect("there is room");
        } else {
            let group = self.in_flight.groups.back_mut().expect("a group");
            group.push(Lifetime::WHOLE, key_hash);
        }
        Answer::Unseen
    }

    /// Sets the keys that the oldest answered group added. The log already has them. If `at` is
    /// set, all earlier records of the log are committed, and the filter is then at `at`.
    fn remember(&mut self, generation: Generation, at: Option<Position>) {
        let added = self.in_flight.groups.pop_front();
        self.set_in_flight(&added.expect("additions are set after the answer"), generation);
        self.at = at.unwrap_or(self.at);
    }

    /// Returns true if it is a short step to set the keys of the oldest answered group.
    fn is_memory_short(&mut self) -> bool {
        let shards = self.in_flight.groups.front().map(ByLifetime::shards);
        shards.is_some_and(|shards| self.has_room_for(shards.into_iter()))
    }
}
