//! Owner of some of the shards. An owner judges the keys of its shards.

use std::convert::Infallible;
use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::sync::mpsc;

use super::asking::{Answers, Asked};
use super::awaited::{Awaited, Partial};
use super::in_flight::{ByLifetime, InFlight, Keys};
use super::mailbox::Mailbox;
use super::progress::{Found, Progress};
use super::worker::Lent;
use crate::item::Findings;
use crate::item::batch::Batch;
use crate::item::{Identity, Options, Reader, Unreadable};
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{ForgettingFilter, Full, KeyHasher, RedisFilterKeys, ShardId, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Copied, Logged, Position};

/// Number of items between two prefetches of filter blocks. The memory loads these blocks while the
/// owner reads further items. A prefetch after each item would need a check that the key is in the
/// owner's own shards. The processor would often mispredict the result.
const FETCH: usize = 32;

/// Job of an owner. An owner does its jobs in the order of their arrival. It reads parts of batches
/// only while it has no other job.
#[derive(Debug)]
pub(super) enum Job {
    /// Read a part of a batch, and pass its key hashes to the owners of their shards.
    Read { progress: Arc<Progress>, part: usize },
    /// Judge the keys of one part, after all parts of the batch have arrived.
    Judge { progress: Arc<Progress>, part: usize, key_hashes: KeyHashes },
    /// Set the keys of the oldest judged batch, which is committed, except those over a limit. The
    /// filter is then at the end of the batch's record.
    Commit { logged: Logged, over_limit: Option<Arc<Keys>> },
    /// Abort all judged batches.
    Abort,
    /// Empty the cache of a filter in Redis.
    EvictSeen,
    /// Report when all earlier jobs are done.
    Mark,
    /// Read later items with these options.
    ReadAs(Options),
    /// Empty the filter for good.
    Clear,
    /// Set keys of a generation, all of which belong to shards of this owner.
    Set { key_hashes: Vec<KeyHash>, generation: Generation },
    /// Begin a generation, whose start is in the log.
    BeginGeneration(Generation),
    /// Free slots of expired keys. The token shows that the job is not done yet.
    Sweep { _token: Arc<()> },
    /// Record that the filter is at position `at`.
    Stand { at: Position },
    /// Copy a shard. The copy may use the memory of `buffer`.
    Copy { shard: ShardId, buffer: Vec<u8>, reply: Sender<Copied> },
    /// Answer a group of questions.
    Ask { group: u64, asked: Asked },
    /// Set the additions of the oldest answered group. The log already has these additions. If `at`
    /// is set, all earlier records of the log are committed, and the filter is then at `at`.
    Remember { generation: Generation, at: Option<Position> },
    /// Let keys of one shard pass again.
    AddTombstones { shard: ShardId, ids: Vec<u128> },
    /// Test keys, all of which belong to shards of this owner.
    Test { key_hashes: Vec<KeyHash>, reply: Sender<Vec<Verdict>> },
    /// Let another thread use the owner.
    Lend { to: Sender<Lent> },
    /// End, and free the memory of the shards.
    End,
}

/// Result of an owner's work.
#[derive(Debug)]
pub(super) enum Done {
    /// All owners have judged a batch.
    Judged { number: u64, batch: Batch<Box<Findings>> },
    /// One owner has answered its questions of a group.
    Answered(Answers),
    /// One owner has done all its jobs before a [`Job::Mark`].
    Marked,
    /// A job of the owner panicked.
    Engine,
    /// The filter has no room for unseen keys. `batch` is the number of the batch with these keys;
    /// `None` if the keys belong to no batch.
    Full { batch: Option<u64>, why: Full },
}

/// The keys of one part of a batch that belong to the shards of one owner.
#[derive(Debug, Default)]
pub(super) struct KeyHashes {
    /// Place of each key in the batch.
    places: Vec<u32>,
    key_hashes: Vec<KeyHash>,
    /// Lifetimes that differ from the default, each with the place of its item, ascending.
    lifetimes: Vec<(u32, Lifetime)>,
}

/// Results of reading one part of a batch. Each entry has the place of its item in the batch.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) fingerprints: Vec<(u32, Fingerprint)>,
    pub(super) unfiltered: Vec<(u32, Option<u16>)>,
    pub(super) dropped: Vec<(u32, u16)>,
    pub(super) rejects: Vec<(u32, Unreadable)>,
    pub(super) emitted: Vec<(u32, Box<[u8]>)>,
    pub(super) scores: Vec<(u32, f64)>,
    pub(super) lifetimes: Vec<(u32, Lifetime)>,
    /// Number of items with a fingerprint of their own.
    pub(super) own_fingerprints: usize,
}

/// State of an owner, which only one thread at a time uses.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) number: usize,
    pub(super) hasher: KeyHasher,
    pub(super) filter: ForgettingFilter,
    /// Keys of the filter in Redis; `None` for a filter in memory.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) reader: Reader,
    /// All owners, including this one.
    pub(super) owners: Vec<Mailbox>,
    /// Channel for the results.
    pub(super) tell: mpsc::UnboundedSender<Done>,
    /// Channel that is closed after the end of all owners.
    pub(super) _alive: Sender<Infallible>,
    pub(super) awaited: Awaited,
    pub(super) in_flight: InFlight,
    /// Number of the batch that is judged next.
    pub(super) next_batch: u64,
    /// Position in the log up to which all keys are set in this owner's shards.
    pub(super) at: Position,
}

impl Owner {
    /// Does one job. Ignores a result whose receiver was dropped.
    pub(super) fn work(&mut self, job: Job) {
        match job {
            Job::Read { progress, part } => self.read(progress, part),
            Job::Judge { progress, part, key_hashes } => {
                self.awaited.batch(progress).key_hashes[part] = Some(key_hashes);
                self.judge_what_is_whole();
            }
            Job::Mark => drop(self.tell.send(Done::Marked)),
            Job::Commit { logged, over_limit } => self.commit(logged, over_limit.as_deref()),
            Job::Abort => self.in_flight.drop_batches(),
            Job::EvictSeen => self.filter.clear(),
            Job::ReadAs(items) => self.reader.read_as(items),
            Job::Clear => self.clear(),
            Job::BeginGeneration(generation) => self.filter.begin_generation(generation),
            Job::Sweep { .. } => drop(self.filter.sweep()),
            Job::Set { key_hashes, generation } => {
                if let Err(why) = self.filter.insert_in(generation, &key_hashes) {
                    let _ = self.tell.send(Done::Full { batch: None, why });
                }
            }
            Job::Stand { at } => self.at = at,
            Job::Ask { group, asked } => self.answer(group, &asked),
            Job::Remember { generation, at } => self.remember(generation, at),
            Job::AddTombstones { shard, ids } => {
                for id in ids {
                    self.filter.forget(KeyHash::named(shard, id));
                }
            }
            Job::Copy { shard, buffer, reply } => self.copy(shard, buffer, &reply),
            Job::Test { key_hashes, reply } => {
                let mut verdicts = Vec::new();
                self.filter.test(&key_hashes, &mut verdicts);
                let _ = reply.send(verdicts);
            }
            Job::Lend { .. } | Job::End => unreachable!("the worker does this job"),
        }
    }

    /// Copies a shard for the snapshot.
    fn copy(&mut self, shard: ShardId, buffer: Vec<u8>, reply: &Sender<Copied>) {
        let (blob, tombstones) = self.filter.save(shard, buffer);
        let _ = reply.send(Copied { blob, at: self.at, tombstones });
    }

    /// Reads a part of a batch, and passes its key hashes to the owners of their shards.
    fn read(&mut self, progress: Arc<Progress>, part: usize) {
        let range = progress.range(part);
        let owners = self.owners.len();
        let mut key_hashes: Vec<_> =
            (0..owners).map(|_| KeyHashes::with_capacity(range.len())).collect();
        let mut readings =
            Readings { fingerprints: Vec::with_capacity(range.len()), ..Readings::default() };
        let mut fetched = 0;
        for index in range {
            let (bytes, number) = (progress.items().get(index), position(index));
            match self.reader.read(bytes) {
                Err(unreadable) => readings.rejects.push((number, unreadable)),
                Ok(item) => {
                    if let Some(emitted) = item.emitted {
                        readings.emitted.push((number, emitted));
                    }
                    if item.score != 0.0 {
                        readings.scores.push((number, item.score));
                    }
                    match item.identity {
                        Identity::Unfiltered => readings.unfiltered.push((number, item.passed)),
                        Identity::Dropped(rule) => readings.dropped.push((number, rule)),
                        Identity::Fingerprint(fingerprint) => {
                            if let Some(shared) = &self.shared
                                && let Err(unplaced) = shared.check(&fingerprint)
                            {
                                let unreadable = Unreadable::NoPlace(unplaced);
                                readings.rejects.push((number, unreadable));
                                continue;
                            }
                            let key_hash = self.hasher.key_hash(&fingerprint);
                            let owner = &mut key_hashes[key_hash.shard().owner(owners)];
                            owner.push(number, key_hash);
                            if item.lifetime != Lifetime::default() {
                                owner.lifetimes.push((number, item.lifetime));
                                readings.lifetimes.push((number, item.lifetime));
                            }
                            readings.own_fingerprints += usize::from(item.has_own_fingerprint);
                            readings.fingerprints.push((number, fingerprint));
                        }
                    }
                }
            }
            if index % FETCH == 0 {
                let own = &key_hashes[self.number].key_hashes;
                self.filter.kind().prefetch(&own[fetched..]);
                fetched = own.len();
            }
        }
        let own = std::mem::take(&mut key_hashes[self.number]);
        for (owner, key_hashes) in
            key_hashes.into_iter().enumerate().filter(|&(it, _)| it != self.number)
        {
            let progress = Arc::clone(&progress);
            self.owners[owner].tell(Job::Judge { progress, part, key_hashes });
        }
        let batch = self.awaited.batch(progress);
        batch.key_hashes[part] = Some(own);
        batch.readings.push((part, readings));
        self.judge_what_is_whole();
    }

    fn judge_what_is_whole(&mut self) {
        while let Some(Partial { progress, key_hashes, readings }) = self.awaited.next_whole() {
            let number = progress.number;
            let unseen = self.judge(&KeyHashes::concat(key_hashes));
            self.next_batch = number + 1;
            // Room is reserved before a batch is passed on, because the keys of a committed batch
            // must fit into the filter.
            let mut shards = self.in_flight.by_shard();
            if let Err(why) =
                shards.try_for_each(|(shard, keys)| self.filter.make_room(shard, keys))
            {
                let _ = self.tell.send(Done::Full { batch: Some(number), why });
                continue;
            }
            if let Some(batch) = progress.done(Found { readings, unseen }) {
                let _ = self.tell.send(Done::Judged { number, batch });
            }
        }
    }

    /// Judges those keys of a batch that belong to this owner's shards. Returns the places of the
    /// unseen items.
    fn judge(&mut self, own: &KeyHashes) -> Vec<u32> {
        let (mut verdicts, mut unseen) = (Vec::new(), Vec::new());
        let mut batch = ByLifetime::default();
        let mut lifetimes = own.lifetimes.iter().peekable();
        self.filter.test(&own.key_hashes, &mut verdicts);
        let judged = own.places.iter().zip(&own.key_hashes).zip(verdicts);
        for ((&place, &key_hash), verdict) in judged {
            let lifetime = lifetimes.next_if(|(other, _)| *other == place);
            if verdict == Verdict::Unseen && self.in_flight.insert(key_hash) {
                unseen.push(place);
                batch.push(lifetime.map_or_else(Lifetime::default, |&(_, it)| it), key_hash);
            }
        }
        self.in_flight.batches.push_back(batch);
        unseen
    }

    /// Sets the keys of the oldest judged batch, which was committed. They get the generation in
    /// which the batch was logged, even if a later one has begun since then.
    fn commit(&mut self, Logged { at, generation }: Logged, over_limit: Option<&Keys>) {
        let judged = self.in_flight.batches.pop_front();
        let mut batch = judged.expect("a batch is judged before its commit");
        if let Some(over_limit) = over_limit {
            self.in_flight.withdraw(&mut batch, over_limit);
        }
        self.set(&batch, generation);
        self.at = at;
    }

    /// Sets keys that were in flight, and were let through in a generation.
    pub(super) fn set(&mut self, keys: &ByLifetime, generation: Generation) {
        for (lifetime, key_hashes) in keys.iter() {
            for &key_hash in key_hashes {
                self.in_flight.remove(key_hash);
            }
            let set = self.filter.insert_in(lifetime.stored_in(generation), key_hashes);
            set.expect("room was reserved before the batch was passed on");
        }
    }

    fn clear(&mut self) {
        self.in_flight = InFlight::default();
        self.filter.clear();
        self.at = Position::START;
    }
}

impl KeyHashes {
    fn with_capacity(most: usize) -> Self {
        Self {
            places: Vec::with_capacity(most),
            key_hashes: Vec::with_capacity(most),
            lifetimes: Vec::new(),
        }
    }

    fn push(&mut self, place: u32, key_hash: KeyHash) {
        self.places.push(place);
        self.key_hashes.push(key_hash);
    }

    /// Joins the parts of a batch, in the order of the batch.
    fn concat(parts: Vec<Option<Self>>) -> Self {
        let mut parts = parts.into_iter().flatten();
        let mut all = parts.next().unwrap_or_default();
        for Self { places, key_hashes, lifetimes } in parts {
            all.places.extend(places);
            all.key_hashes.extend(key_hashes);
            all.lifetimes.extend(lifetimes);
        }
        all
    }
}

/// Converts the index of an item in its batch to the integer type of the results.
fn position(index: usize) -> u32 {
    u32::try_from(index).expect("a batch has at most 100,000 items, a buffer of lines 4 GiB")
}
