//! One thread of the engine: it owns some of the shards, and judges what falls into them.

use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::sync::mpsc;

use super::asking::{Answers, Asked};
use super::awaited::{Awaited, Partial};
use super::gauges::Gauges;
use super::growing::Growing;
use super::in_flight::InFlight;
use super::memory::Memory;
use super::progress::{Found, Progress};
use super::tombstones::Tombstones;
use crate::item::batch::{Batch, Findings};
use crate::item::{Identity, Item, Reader, Unreadable};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::redisbloom::{AddError, Filter};
use urlseen_core::filter::{Count, Hashing, RedisFilterKeys, ShardId, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Position;

/// After how many items the blocks of their keys are fetched: often enough for memory not to be
/// idle while items are read, and not at each item, as nobody can foresee whether it is of an own
/// shard.
const FETCH: usize = 32;

/// A part of a batch whose items are to be read, by whichever thread has time.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) progress: Arc<Progress>,
    pub(super) part: usize,
}

/// What an owner is told to do. It does everything in the order it is told.
#[derive(Debug)]
pub(super) enum Job {
    /// Judge what of a part of a batch falls into its shards, when all of the batch is there.
    Judge { progress: Arc<Progress>, part: usize, key_hashes: KeyHashes },
    /// The oldest judged batch is committed, which brings the filter to `at`: remember it.
    Commit { at: Position },
    /// No judged batch will be committed as it is: abort them all.
    Abort,
    /// Where the filter is in Redis: evict what is known to be seen.
    EvictSeen,
    /// Say so when all that was told before is done.
    Mark,
    /// Empty the filter.
    Clear,
    /// Put a shard's bits in place of what it holds.
    Load { shard: ShardId, bytes: Vec<u8>, count: Count, reply: Sender<()> },
    /// Set keys, all of its own shards.
    Set { key_hashes: Vec<KeyHash> },
    /// The filter stands there.
    Stand { at: Position },
    /// Put this filter of RedisBloom, or an empty one, in the place of the one that there is.
    Replace { filter: Option<Box<Filter>>, reply: Sender<()> },
    /// The filter of RedisBloom as it is now.
    Freeze { reply: Sender<Frozen> },
    /// Copy a shard's bits into `bytes`.
    Copy { shard: ShardId, bytes: Vec<u8>, reply: Sender<Copied> },
    /// Answer questions that nobody asks by a batch.
    Ask { group: u64, asked: Asked },
    /// What was added in the oldest group answered is written down: set it. All that was written
    /// before is committed where there is an `at`, which the filter is recovered to.
    Remember { at: Option<Position> },
    /// Let keys of a shard pass once more, where a filter is recovered.
    AddTombstones { shard: ShardId, ids: Vec<u128> },
    /// Whether keys, all of its own shards, are set.
    Test { key_hashes: Vec<KeyHash>, reply: Sender<Vec<Verdict>> },
    /// Work no more.
    End,
}

/// A shard as it stands at some moment.
#[derive(Debug)]
pub struct Copied {
    /// Its bits, as [`Shards::load`](urlseen_core::filter::Shards::load) takes them back.
    pub bytes: Vec<u8>,
    /// What is set in it.
    pub(crate) count: Count,
    /// The last batch in it.
    pub(crate) at: Position,
    /// What of it was forgotten and has not passed again, by the 128 bits that the layout makes of
    /// a fingerprint.
    pub(crate) tombstones: Vec<u128>,
}

/// A filter of RedisBloom as it stands at some moment.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The filter, which is added to no more.
    pub(crate) filter: Filter,
    /// The last batch in it.
    pub(crate) at: Position,
    /// What was forgotten and has not passed again, as [`Copied::tombstones`].
    pub(crate) tombstones: Vec<u128>,
}

/// What an owner did.
#[derive(Debug)]
pub(super) enum Done {
    /// A batch is judged, by all threads.
    Judged { number: u64, batch: Batch<Findings> },
    /// Questions are answered.
    Answered(Answers),
    /// All that was told before the mark is done.
    Marked,
    /// The thread panicked.
    Engine,
    /// The filter is full, and what was found unseen, in that batch if it was in one, cannot be set
    /// any more.
    Full { batch: Option<u64>, why: AddError },
}

/// What a thread is to judge of a part of a batch, and where in the batch it stands.
pub(super) type KeyHashes = Vec<(u32, KeyHash)>;

/// What the items of a part of a batch say; items are named by their place in the batch.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) fingerprints: Vec<(u32, Fingerprint)>,
    pub(super) unfiltered: Vec<u32>,
    pub(super) passed: Vec<(u32, u16)>,
    pub(super) rejects: Vec<(u32, Unreadable)>,
    pub(super) emitted: Vec<(u32, Box<[u8]>)>,
    pub(super) scores: Vec<(u32, f64)>,
}

/// A thread's own share of the work: nothing in it is shared, so nothing is locked.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) number: usize,
    pub(super) hashing: Hashing,
    pub(super) memory: Memory,
    /// Where in Redis the filter is, if it is there.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) reader: Reader,
    pub(super) gauges: Arc<Gauges>,
    /// All owners, this one too.
    pub(super) owners: Vec<Sender<Job>>,
    /// Who wants to know what is done.
    pub(super) tell: mpsc::UnboundedSender<Done>,
    pub(super) awaited: Awaited,
    pub(super) in_flight: InFlight,
    pub(super) tombstones: Tombstones,
    /// The last batch that is in its shards.
    pub(super) at: Position,
}

impl Owner {
    /// Does one job. Whoever wants to know of it may be gone: then it is nobody's loss.
    pub(super) fn work(&mut self, job: Job) {
        match job {
            Job::Judge { progress, part, key_hashes } => {
                self.awaited.batch(progress).key_hashes[part] = Some(key_hashes);
                self.judge_what_is_whole();
            }
            Job::Mark => drop(self.tell.send(Done::Marked)),
            Job::Commit { at } => self.commit(at),
            Job::Abort => self.in_flight.drop_batches(),
            Job::EvictSeen => self.memory.evict_seen(),
            Job::Clear => self.clear(),
            Job::Load { shard, bytes, count, reply } => {
                if let Some(shards) = self.memory.shards() {
                    shards.load(shard, &bytes, count);
                }
                self.show();
                let _ = reply.send(());
            }
            Job::Set { key_hashes } => {
                if let Err(why) = self.memory.set_all(key_hashes.iter().copied()) {
                    let _ = self.tell.send(Done::Full { batch: None, why });
                }
                for &key_hash in &key_hashes {
                    self.tombstones.remove(key_hash);
                }
                self.show();
            }
            Job::Replace { filter, reply } => {
                if let Some(growing) = self.memory.growing() {
                    growing.replace(filter.map(|filter| *filter));
                }
                self.show();
                let _ = reply.send(());
            }
            Job::Freeze { reply } => self.freeze(&reply),
            Job::Stand { at } => self.at = at,
            Job::Ask { group, asked } => self.answer(group, &asked),
            Job::Remember { at } => self.remember(at),
            Job::AddTombstones { shard, ids } => {
                for id in ids {
                    self.tombstones.insert(shard, id);
                }
            }
            Job::Copy { shard, bytes, reply } => self.copy(shard, bytes, &reply),
            Job::Test { key_hashes, reply } => drop(reply.send(self.test(&key_hashes))),
            Job::End => unreachable!("a thread that is to end does no more work"),
        }
    }

    /// Hands a filter in one piece to the snapshot.
    fn freeze(&mut self, reply: &Sender<Frozen>) {
        let at = self.at;
        match self.memory.growing().map(Growing::frozen) {
            Some(Ok(filter)) => {
                let tombstones = self.tombstones.ids().map(|(_, id)| id).collect();
                let _ = reply.send(Frozen { filter, at, tombstones });
            }
            Some(Err(why)) => drop(self.tell.send(Done::Full { batch: None, why })),
            None => {}
        }
    }

    /// Copies a shard for the snapshot.
    fn copy(&mut self, shard: ShardId, mut bytes: Vec<u8>, reply: &Sender<Copied>) {
        let at = self.at;
        if let Some(shards) = self.memory.shards() {
            bytes.clear();
            bytes.extend_from_slice(shards.bytes(shard));
            let tombstones = self.tombstones.ids().filter(|&(of, _)| of == shard);
            let tombstones = tombstones.map(|(_, id)| id).collect();
            let count = shards.count(shard);
            let _ = reply.send(Copied { bytes, count, at, tombstones });
        }
    }

    /// Tests keys, and sets nothing.
    fn test(&mut self, key_hashes: &[KeyHash]) -> Vec<Verdict> {
        let mut verdicts = self.memory.test_all(key_hashes.iter().copied());
        for (verdict, &key_hash) in verdicts.iter_mut().zip(key_hashes) {
            if self.tombstones.contains(key_hash) {
                *verdict = Verdict::Unseen;
            }
        }
        verdicts
    }

    /// Reads a part of a batch, and hands its key hashes to those that have their shards.
    pub(super) fn read(&mut self, read: Read) {
        let Read { progress, part } = read;
        let range = progress.range(part);
        let owners = self.owners.len();
        let mut key_hashes = vec![KeyHashes::with_capacity(range.len()); owners];
        let mut readings =
            Readings { fingerprints: Vec::with_capacity(range.len()), ..Readings::default() };
        let mut fetched = 0;
        for index in range {
            let (bytes, number) = (progress.items().get(index), position(index));
            match self.reader.read(bytes).and_then(|item| fits(item, bytes, progress.most())) {
                Err(unreadable) => readings.rejects.push((number, unreadable)),
                Ok(item) => {
                    if let Some(emitted) = item.emitted {
                        readings.emitted.push((number, emitted));
                    }
                    if item.score != 0.0 {
                        readings.scores.push((number, item.score));
                    }
                    match item.identity {
                        Identity::Unfiltered => {
                            readings.unfiltered.push(number);
                            readings.passed.extend(item.passed.map(|rule| (number, rule)));
                        }
                        Identity::Fingerprint(fingerprint) => {
                            if let Some(shared) = &self.shared
                                && let Err(unplaced) = shared.check(&fingerprint)
                            {
                                let unreadable = Unreadable::NoPlace(unplaced);
                                readings.rejects.push((number, unreadable));
                                continue;
                            }
                            let key_hash = self.hashing.key_hash(&fingerprint);
                            key_hashes[key_hash.shard().owner(owners)].push((number, key_hash));
                            readings.fingerprints.push((number, fingerprint));
                        }
                    }
                }
            }
            if index % FETCH == 0 {
                let own = &key_hashes[self.number];
                own[fetched..].iter().for_each(|&(_, key_hash)| self.memory.fetch(key_hash));
                fetched = own.len();
            }
        }
        let own = std::mem::take(&mut key_hashes[self.number]);
        for (owner, key_hashes) in
            key_hashes.into_iter().enumerate().filter(|&(it, _)| it != self.number)
        {
            let progress = Arc::clone(&progress);
            let _ = self.owners[owner].send(Job::Judge { progress, part, key_hashes });
        }
        let batch = self.awaited.batch(progress);
        batch.key_hashes[part] = Some(own);
        batch.readings.push((part, readings));
        self.judge_what_is_whole();
    }

    fn judge_what_is_whole(&mut self) {
        while let Some(Partial { progress, key_hashes, readings }) = self.awaited.next_whole() {
            let number = progress.number();
            let own = key_hashes.into_iter().flatten().collect::<Vec<_>>().concat();
            let unseen = self.judge(&own);
            // Before a batch goes on there is room for it: what is committed must be set.
            if let Err(why) = self.memory.make_room(self.in_flight.len()) {
                let _ = self.tell.send(Done::Full { batch: Some(number), why });
                continue;
            }
            if let Some(batch) = progress.done(Found { readings, unseen }) {
                let _ = self.tell.send(Done::Judged { number, batch });
            }
        }
    }

    /// The items of a batch that are unseen, of those that fall into this owner's shards.
    fn judge(&mut self, own: &[(u32, KeyHash)]) -> Vec<u32> {
        let mut unseen = Vec::new();
        let mut key_hashes = Vec::new();
        let verdicts = self.memory.test_all(own.iter().map(|&(_, key_hash)| key_hash));
        for (&(number, key_hash), verdict) in own.iter().zip(verdicts) {
            let passes = verdict == Verdict::Unseen || self.tombstones.contains(key_hash);
            if passes && self.in_flight.insert(key_hash) {
                unseen.push(number);
                key_hashes.push(key_hash);
            }
        }
        self.in_flight.push_batch(key_hashes);
        unseen
    }

    /// Bits of a batch are set here and nowhere else: when its commit is known to have happened.
    fn commit(&mut self, at: Position) {
        let key_hashes = self.in_flight.pop_batch().expect("a batch is committed once judged");
        self.set(&key_hashes);
        self.at = at;
        self.show();
    }

    /// Sets what was in flight.
    pub(super) fn set(&mut self, key_hashes: &[KeyHash]) {
        let set = self.memory.set_all(key_hashes.iter().copied());
        set.expect("room was made for it before it was handed on");
        for &key_hash in key_hashes {
            if self.in_flight.settle(key_hash) {
                self.tombstones.remove(key_hash);
            }
        }
    }

    fn clear(&mut self) {
        self.tombstones.clear();
        self.in_flight = InFlight::default();
        self.memory.clear();
        self.at = Position::START;
        self.show();
    }

    /// Lets all see how full the shards are.
    pub(super) fn show(&mut self) {
        match &self.memory {
            Memory::Whole(shards) => self.gauges.store(shards),
            Memory::RedisBloom(growing) => self.gauges.store_whole(growing.whole()),
            Memory::Recent(_) | Memory::Elsewhere => {}
        }
    }
}

/// The item, if at most `most` bytes go on of it.
fn fits<'a>(item: Item<'a>, bytes: &[u8], most: usize) -> Result<Item<'a>, Unreadable> {
    let length = item.emitted.as_deref().unwrap_or(bytes).len();
    if length > most { Err(Unreadable::TooLarge { length }) } else { Ok(item) }
}

/// The place of an item in its batch, as it is kept for each.
fn position(index: usize) -> u32 {
    u32::try_from(index).expect("a batch has at most 100,000 items, a buffer of lines 4 GiB")
}
