//! Judge of a filter. It has the whole filter, and takes one step at a time.

use std::collections::HashSet;

use super::in_flight::{ByLifetime, InFlight, JudgedBatch};
use super::limiter::Limiter;
use super::query::{Answer, Wanted};
use super::queue::SHORT;
use super::reading::{Part, Reading};
use crate::item::Findings;
use crate::item::batch::Batch;
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::filter::{
    Effort, ForgettingFilter, Full, Hashed, KeyHash, KeyHasher, SHARDS, ShardId, Verdict,
};
use urlseen_core::limit::Counted;
use urlseen_core::storage::{Copied, Counts, Logged, Position};

/// Filter, with the keys that were found unseen and are not set yet. The batches, answers and
/// commits take effect in the order of the calls.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) filter: ForgettingFilter,
    hasher: KeyHasher,
    /// True if an addition is inserted when it is answered.
    inserts_at_once: bool,
    in_flight: InFlight,
    /// Limits on unseen items, if there are any.
    pub(super) limiter: Option<Limiter>,
    /// Counts of limits, of all committed batches.
    pub(super) counts: Counts,
    /// Position in the log up to which all keys and counts are set.
    at: Position,
    /// Error of a filter that had no room. No batch is judged after that.
    full: Option<Full>,
}

impl Judge {
    /// Makes a judge with an empty filter.
    pub(super) fn new(
        filter: ForgettingFilter,
        hasher: KeyHasher,
        inserts_at_once: bool,
        limiter: Option<Limiter>,
    ) -> Self {
        Self {
            filter,
            hasher,
            inserts_at_once,
            in_flight: InFlight::default(),
            limiter,
            counts: Counts::default(),
            at: Position::START,
            full: None,
        }
    }

    /// Judges a batch that is read. Its unseen keys are in flight after that, and the filter has
    /// room for them.
    ///
    /// # Errors
    /// The filter has no room for the keys of this batch, or of an earlier one.
    pub(super) fn judge(&mut self, reading: &Reading) -> Result<Batch<Box<Findings>>, Full> {
        self.has_room()?;
        let (mut found, mut keys) = (Findings::default(), ByLifetime::default());
        for part in reading.take_parts() {
            self.judge_part(part, reading.keeps_seen, &mut found, &mut keys);
        }
        if let Some(limiter) = &mut self.limiter {
            limiter.admit(reading.batch.items(), &mut found, &self.counts);
            let over = found.over_limit().iter();
            let over = over.map(|over| self.hasher.key_hash(&over.fingerprint).id()).collect();
            self.in_flight.withdraw(&mut keys, &over);
        }
        let counted = found.counted().to_vec();
        self.in_flight.batches.push_back(JudgedBatch { keys, counted });
        // Room is reserved before a batch is passed on, because the keys of a committed batch must
        // fit into the filter.
        for (shard, keys) in self.in_flight.by_shard() {
            if let Err(full) = self.filter.kind().reserve(shard, keys, Effort::Any) {
                return Err(self.full.insert(full).clone());
            }
        }
        Ok(reading.batch.found(found))
    }

    #[allow(clippy::stable_sort_primitive)] // the stable sort is fast on sorted runs
    fn judge_part(
        &mut self,
        part: Part,
        keeps_seen: bool,
        found: &mut Findings,
        keys: &mut ByLifetime,
    ) {
        let verdicts = self.test(&part.key_hashes);
        let unseen = verdicts.iter().filter(|&&verdict| verdict == Verdict::Unseen).count();
        keys.reserve(unseen);
        found.onward.reserve(unseen);
        found.added.reserve(unseen);
        let mut lifetimes = part.lifetimes.into_iter().peekable();
        let from = found.onward.len();
        let places = part.places.into_iter().zip(part.key_hashes);
        for (((place, key_hash), fingerprint), verdict) in
            places.zip(part.fingerprints).zip(verdicts)
        {
            let lifetime = lifetimes.next_if(|&(other, _)| other == place);
            if verdict == Verdict::Unseen && self.in_flight.insert(key_hash) {
                let lifetime = lifetime.map_or_else(Lifetime::default, |(_, lifetime)| lifetime);
                if lifetime != Lifetime::default() {
                    found.lifetimes.push(found.added.len(), lifetime);
                }
                keys.push(lifetime, key_hash);
                found.onward.push(place);
                found.added.push(fingerprint);
            } else if keeps_seen {
                found.seen.push(fingerprint);
            }
        }
        if !part.found.unfiltered.is_empty() {
            found.onward.extend(part.found.unfiltered.iter().map(|&(place, _)| place));
            found.onward[from..].sort();
        }
        found.append(part.found);
    }

    /// Returns the error of a filter that had no room for the keys of a batch or of a recovery.
    pub(super) fn has_room(&self) -> Result<(), Full> {
        self.full.clone().map_or(Ok(()), Err)
    }

    /// Returns true if keys in these shards are few and need no long work.
    pub(super) fn has_room_for(
        &mut self,
        mut shards: impl ExactSizeIterator<Item = ShardId>,
    ) -> bool {
        shards.len() <= SHORT
            && shards.all(|shard| {
                let keys = self.in_flight.in_shard(shard) + SHORT as u64;
                self.filter.kind().reserve(shard, keys, Effort::Short) == Ok(true)
            })
    }

    /// Returns true if the next commit is a short step.
    pub(super) fn is_commit_short(&mut self) -> bool {
        let shards = self.in_flight.batches.front().map(|batch| batch.keys.shards());
        shards.is_some_and(|shards| self.has_room_for(shards.into_iter()))
    }

    /// Returns true if it is a short step to set the keys of the oldest answered group.
    pub(super) fn is_memory_short(&mut self) -> bool {
        let shards = self.in_flight.groups.front().map(ByLifetime::shards);
        shards.is_some_and(|shards| self.has_room_for(shards.into_iter()))
    }

    /// Sets the keys of the oldest judged batch, which was committed. They get the generation in
    /// which the batch was logged, even if a later one has begun since then. The filter is then at
    /// the end of the batch's record.
    pub(super) fn commit(&mut self, Logged { at, generation }: Logged) {
        let judged = self.in_flight.batches.pop_front();
        let JudgedBatch { keys, counted } = judged.expect("a batch is judged before its commit");
        self.set_in_flight(&keys, generation);
        self.counts.change(&counted, at);
        if let Some(limiter) = &mut self.limiter {
            limiter.committed(&counted);
        }
        self.at = at;
    }

    /// Aborts all judged batches. Their keys are unseen again.
    pub(super) fn abort(&mut self) {
        self.in_flight.drop_batches();
        if let Some(limiter) = &mut self.limiter {
            limiter.abort();
        }
    }

    /// Answers the questions in order, so a fingerprint that a group adds twice is unseen only
    /// once. Added fingerprints count as seen immediately. They are set in the filter after the log
    /// has them, or at once if the kind requires it. Then a snapshot may have an addition that the
    /// log lacks, if the process is killed before the client gets its answer.
    pub(super) fn answer(&mut self, asked: &[(KeyHash, Wanted)]) -> Vec<Answer> {
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
    pub(super) fn remember(&mut self, generation: Generation, at: Option<Position>) {
        let added = self.in_flight.groups.pop_front();
        self.set_in_flight(&added.expect("additions are set after the answer"), generation);
        self.at = at.unwrap_or(self.at);
    }

    /// Sets keys that were in flight, and were let through in a generation.
    fn set_in_flight(&mut self, keys: &ByLifetime, generation: Generation) {
        for (lifetime, key_hashes) in keys.iter() {
            for &key_hash in key_hashes {
                self.in_flight.remove(key_hash);
            }
            let set = self.filter.insert(lifetime.stored_in(generation), key_hashes);
            set.expect("room was reserved before the batch was passed on");
        }
    }

    /// Lets the filter grow for this number of keys, if there is room.
    pub(super) fn expect(&mut self, keys: u64) {
        for shard in ShardId::all() {
            // A shard without room is found full by the key that does not fit.
            let _ = self.filter.kind().reserve(shard, keys / SHARDS as u64, Effort::Any);
        }
    }

    /// Sets keys of a recovery.
    pub(super) fn set(&mut self, key_hashes: &[KeyHash], generation: Generation) {
        if let Err(full) = self.filter.insert(generation, key_hashes) {
            self.full.get_or_insert(full);
        }
    }

    /// Tests keys, in their order. Ignores the keys in flight.
    pub(super) fn test(&mut self, key_hashes: &[KeyHash]) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(key_hashes.len());
        self.filter.test(key_hashes, &mut verdicts);
        verdicts
    }

    /// Copies a shard for the snapshot. The copy may use the memory of `buffer`.
    pub(super) fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Copied {
        let (blob, tombstones) = self.filter.save(shard, buffer);
        Copied { blob, at: self.at, tombstones }
    }

    /// Copies the counts of limits for the snapshot.
    pub(super) fn copy_counts(&mut self) -> (Vec<Counted>, Position) {
        (self.counts.copy(), self.at)
    }

    /// Records that the filter is at position `at`.
    pub(super) fn stand(&mut self, at: Position) {
        self.at = at;
    }

    /// Empties the filter for good.
    pub(super) fn clear(&mut self) {
        self.abort();
        self.in_flight = InFlight::default();
        self.filter.clear();
        (self.counts, self.at, self.full) = (Counts::default(), Position::START, None);
    }
}
