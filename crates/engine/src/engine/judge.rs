//! Judge of a filter. It has the whole filter, and the keys that it found unseen and has not set
//! yet. It takes one step at a time.

use std::collections::{HashSet, VecDeque};

use super::limiter::Limiter;
use super::reading::{Part, Reading};
use crate::item::Findings;
use crate::item::batch::{Batch, Judged};
use urlseen_filter::Generation;
use urlseen_filter::limit::{Counted, Counts};
use urlseen_filter::{
    Effort, ForgettingFilter, Full, Hashed, KeyHash, KeyHasher, Lifetime, SHARDS, ShardId, Verdict,
};
use urlseen_storage::{Copied, Logged, Position};

/// Maximum number of items or keys of a step that a task does itself if the judge is free.
pub(super) const SHORT: usize = 64;

/// Filter, with the keys that were found unseen and are not set yet. The batches, answers and
/// commits take effect in the order of the calls.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) filter: ForgettingFilter,
    hasher: KeyHasher,
    /// True if an addition is inserted when it is answered.
    pub(super) inserts_at_once: bool,
    pub(super) in_flight: InFlight,
    /// Limits on unseen items, if there are any.
    pub(super) limiter: Option<Limiter>,
    /// Counts of limits, of all committed batches.
    pub(super) counts: Counts,
    /// Position in the log up to which all keys and counts are set.
    pub(super) at: Position,
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
    pub(super) fn judge(&mut self, reading: &Reading) -> Result<Batch<Judged>, Full> {
        self.has_room()?;
        let (mut found, mut keys) = (Findings::default(), ByLifetime::default());
        for part in reading.take_parts() {
            self.judge_part(part, reading.keeps_seen, &mut found, &mut keys);
        }
        if let Some(limiter) = &mut self.limiter {
            limiter.admit(&reading.batch.items, &mut found, &self.counts);
            let over = found.over_limit.iter();
            let over = over.map(|over| self.hasher.key_hash(&over.fingerprint).id()).collect();
            self.in_flight.withdraw(&mut keys, &over);
        }
        let counted = found.counted.clone();
        self.in_flight.batches.push_back(JudgedBatch { keys, counted });
        // Room is reserved before a batch is passed on, because the keys of a committed batch must
        // fit into the filter.
        for (shard, keys) in self.in_flight.by_shard() {
            if let Err(full) = self.filter.kind().reserve(shard, keys, Effort::Any) {
                return Err(self.full.insert(full).clone());
            }
        }
        Ok(reading.batch.judged(found))
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

    /// Returns true if it is a short step to settle the next batch.
    pub(super) fn is_settling_short(&mut self) -> bool {
        let shards = self.in_flight.batches.front().map(|batch| batch.keys.shards());
        shards.is_some_and(|shards| self.has_room_for(shards.into_iter()))
    }

    /// Sets the keys of the oldest judged batch, which was committed. They get the generation in
    /// which the batch was logged, even if a later one has begun since then. The filter is then at
    /// the end of the batch's record.
    pub(super) fn settle(&mut self, Logged { at, generation }: Logged) {
        let judged = self.in_flight.batches.pop_front();
        let JudgedBatch { keys, counted } = judged.expect("a batch is judged before its commit");
        self.set_in_flight(&keys, generation);
        if !counted.is_empty() {
            self.counts.change(&counted, at.number);
            if let Some(limiter) = &mut self.limiter {
                limiter.settle(&counted);
            }
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

    /// Sets keys that were in flight, and were let through in a generation.
    pub(super) fn set_in_flight(&mut self, keys: &ByLifetime, generation: Generation) {
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

    /// Empties the filter for good.
    pub(super) fn clear(&mut self) {
        self.abort();
        self.in_flight = InFlight::default();
        self.filter.clear();
        (self.counts, self.at, self.full) = (Counts::default(), Position::START, None);
    }
}

/// Set of keys. A key is the 128-bit hash of a fingerprint. The filter uses nothing else of a
/// fingerprint.
type Keys = HashSet<u128, Hashed>;

/// Exact set of the keys that were found unseen and are not set yet. Keys of batches are set at the
/// commit. Keys of single questions are set after the log has them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    keys: Keys,
    /// Judged batches, oldest first.
    batches: VecDeque<JudgedBatch>,
    /// Added keys by group of questions, oldest first.
    pub(super) groups: VecDeque<ByLifetime>,
    /// Number of keys in the set, by shard.
    by_shard: ShardCounts,
}

/// Changes of the filter and of the counts that the commit of a judged batch makes.
#[derive(Debug)]
struct JudgedBatch {
    keys: ByLifetime,
    /// Changes of the counts of limits.
    counted: Vec<Counted>,
}

/// Keys of a batch or of a group of questions, by lifetime.
#[derive(Debug, Default)]
pub(super) struct ByLifetime(Vec<(Lifetime, Vec<KeyHash>)>);

impl ByLifetime {
    pub(super) fn push(&mut self, lifetime: Lifetime, key_hash: KeyHash) {
        match self.0.iter_mut().find(|(other, _)| *other == lifetime) {
            Some((_, key_hashes)) => key_hashes.push(key_hash),
            None => self.0.push((lifetime, vec![key_hash])),
        }
    }

    /// Makes room for this number of keys with the default lifetime.
    fn reserve(&mut self, keys: usize) {
        if self.0.is_empty() {
            self.0.push((Lifetime::default(), Vec::new()));
        }
        self.0[0].1.reserve(keys);
    }

    /// Returns the shards of a few of the keys.
    pub(super) fn shards(&self) -> Vec<ShardId> {
        let keys = self.iter().flat_map(|(_, key_hashes)| key_hashes);
        keys.take(SHORT + 1).map(KeyHash::shard).collect()
    }

    fn iter(&self) -> impl Iterator<Item = (Lifetime, &[KeyHash])> + Clone {
        self.0.iter().map(|(lifetime, key_hashes)| (*lifetime, &key_hashes[..]))
    }
}

/// Number of keys of each shard.
#[derive(Debug)]
struct ShardCounts([u64; SHARDS]);

impl Default for ShardCounts {
    fn default() -> Self {
        Self([0; SHARDS])
    }
}

impl InFlight {
    /// Returns the number of keys in the set that belong to a shard.
    pub(super) fn in_shard(&self, shard: ShardId) -> u64 {
        self.by_shard.0[shard.index()]
    }

    /// Returns the shards that have keys in the set, with the numbers of these keys.
    fn by_shard(&self) -> impl Iterator<Item = (ShardId, u64)> {
        ShardId::all().map(|shard| (shard, self.in_shard(shard))).filter(|&(_, keys)| keys > 0)
    }

    pub(super) fn contains(&self, key_hash: KeyHash) -> bool {
        self.keys.contains(&key_hash.id())
    }

    /// Inserts a key. Returns true if the key was not in the set.
    pub(super) fn insert(&mut self, key_hash: KeyHash) -> bool {
        let is_new = self.keys.insert(key_hash.id());
        self.by_shard.0[key_hash.shard().index()] += u64::from(is_new);
        is_new
    }

    /// Removes a key from the set. Returns true if the key was in the set.
    pub(super) fn remove(&mut self, key_hash: KeyHash) -> bool {
        let was_there = self.keys.remove(&key_hash.id());
        self.by_shard.0[key_hash.shard().index()] -= u64::from(was_there);
        was_there
    }

    /// Forgets a key: its batch or group will not set it. The next item with the key is unseen
    /// again.
    pub(super) fn forget(&mut self, key_hash: KeyHash) {
        if self.remove(key_hash) {
            let lists =
                self.groups.iter_mut().chain(self.batches.iter_mut().map(|it| &mut it.keys));
            let mut lists = lists.flat_map(|list| &mut list.0).map(|(_, list)| list);
            let found = lists.find_map(|list| {
                let place = list.iter().position(|other| other.id() == key_hash.id())?;
                Some(list.swap_remove(place))
            });
            found.expect("a list has each key of the set");
        }
    }

    /// Drops the keys of all batches.
    fn drop_batches(&mut self) {
        while let Some(batch) = self.batches.pop_front() {
            for (_, key_hashes) in batch.keys.iter() {
                for &key_hash in key_hashes {
                    self.remove(key_hash);
                }
            }
        }
    }

    /// Removes keys from the set and from their batch, which will not set them.
    fn withdraw(&mut self, batch: &mut ByLifetime, keys: &Keys) {
        for (_, key_hashes) in &mut batch.0 {
            key_hashes.retain(|&key_hash| {
                let stays = !keys.contains(&key_hash.id());
                if !stays {
                    self.remove(key_hash);
                }
                stays
            });
        }
    }
}
