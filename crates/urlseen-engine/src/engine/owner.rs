//! One thread of the engine: it owns some of the shards, and judges what falls into them.

use std::io;
use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::sync::mpsc;

use super::asking::{Answers, Asked};
use super::awaited::{Awaited, Partial};
use super::in_flight::InFlight;
use super::pieces::Pieces;
use super::progress::{Found, Progress};
use crate::item::batch::{Batch, Findings};
use crate::item::{Identity, Item, Reader, Unreadable};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{ForgettingFilter, Full, KeyHasher, RedisFilterKeys, ShardId, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Copied, Position, Section};

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
    /// Put what was saved of a shard in place of what it holds.
    Load { section: Section, body: Pieces, reply: Sender<io::Result<()>> },
    /// Set keys, all of its own shards.
    Set { key_hashes: Vec<KeyHash> },
    /// The filter stands there.
    Stand { at: Position },
    /// Copy a shard, perhaps into `buffer`.
    Copy { shard: ShardId, buffer: Vec<u8>, reply: Sender<Copied> },
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
    Full { batch: Option<u64>, why: Full },
}

/// What a thread is to judge of a part of a batch.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyHashes {
    /// Where in the batch each stands.
    places: Vec<u32>,
    key_hashes: Vec<KeyHash>,
}

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
    pub(super) hasher: KeyHasher,
    pub(super) filter: ForgettingFilter,
    /// Where in Redis the filter is, if it is there.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    pub(super) reader: Reader,
    /// All owners, this one too.
    pub(super) owners: Vec<Sender<Job>>,
    /// Who wants to know what is done.
    pub(super) tell: mpsc::UnboundedSender<Done>,
    pub(super) awaited: Awaited,
    pub(super) in_flight: InFlight,
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
            Job::EvictSeen => self.filter.clear(),
            Job::Clear => self.clear(),
            Job::Load { section, mut body, reply } => {
                let Section { shard, keys, len, .. } = section;
                let _ = reply.send(self.filter.load(shard, keys, len, &mut body));
            }
            Job::Set { key_hashes } => {
                if let Err(why) = self.filter.insert(&key_hashes) {
                    let _ = self.tell.send(Done::Full { batch: None, why });
                }
            }
            Job::Stand { at } => self.at = at,
            Job::Ask { group, asked } => self.answer(group, &asked),
            Job::Remember { at } => self.remember(at),
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
            Job::End => unreachable!("a thread that is to end does no more work"),
        }
    }

    /// Copies a shard for the snapshot.
    fn copy(&mut self, shard: ShardId, buffer: Vec<u8>, reply: &Sender<Copied>) {
        let (blob, tombstones) = self.filter.save(shard, buffer);
        let _ = reply.send(Copied { blob, at: self.at, tombstones });
    }

    /// Reads a part of a batch, and hands its key hashes to those that have their shards.
    pub(super) fn read(&mut self, read: Read) {
        let Read { progress, part } = read;
        let range = progress.range(part);
        let owners = self.owners.len();
        let mut key_hashes = vec![KeyHashes::default(); owners];
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
                            let key_hash = self.hasher.key_hash(&fingerprint);
                            key_hashes[key_hash.shard().owner(owners)].push(number, key_hash);
                            readings.fingerprints.push((number, fingerprint));
                        }
                    }
                }
            }
            if index % FETCH == 0 {
                let own = &key_hashes[self.number].key_hashes;
                self.filter.prefetch(&own[fetched..]);
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
            let unseen = self.judge(&KeyHashes::concat(key_hashes));
            // Before a batch goes on there is room for it: what is committed must be set.
            if let Err(why) = self.filter.reserve(self.in_flight.len()) {
                let _ = self.tell.send(Done::Full { batch: Some(number), why });
                continue;
            }
            if let Some(batch) = progress.done(Found { readings, unseen }) {
                let _ = self.tell.send(Done::Judged { number, batch });
            }
        }
    }

    /// The items of a batch that are unseen, of those that fall into this owner's shards.
    fn judge(&mut self, own: &KeyHashes) -> Vec<u32> {
        let (mut verdicts, mut unseen, mut key_hashes) = (Vec::new(), Vec::new(), Vec::new());
        self.filter.test(&own.key_hashes, &mut verdicts);
        let judged = own.places.iter().zip(&own.key_hashes).zip(verdicts);
        for ((&place, &key_hash), verdict) in judged {
            if verdict == Verdict::Unseen && self.in_flight.insert(key_hash) {
                unseen.push(place);
                key_hashes.push(key_hash);
            }
        }
        self.in_flight.push_batch(key_hashes);
        unseen
    }

    /// Bits of a batch are set here and nowhere else: when its commit is known to have happened.
    fn commit(&mut self, at: Position) {
        let key_hashes = self.in_flight.pop_batch().expect("a batch is committed once judged");
        self.set(key_hashes);
        self.at = at;
    }

    /// Sets what was in flight, but for what was forgotten since.
    pub(super) fn set(&mut self, mut key_hashes: Vec<KeyHash>) {
        key_hashes.retain(|&key_hash| self.in_flight.settle(key_hash));
        let set = self.filter.insert(&key_hashes);
        set.expect("room was made for it before it was handed on");
    }

    fn clear(&mut self) {
        self.in_flight = InFlight::default();
        self.filter.clear();
        self.at = Position::START;
    }
}

impl KeyHashes {
    fn push(&mut self, place: u32, key_hash: KeyHash) {
        self.places.push(place);
        self.key_hashes.push(key_hash);
    }

    /// Those of all parts of a batch, in its order.
    fn concat(parts: Vec<Option<Self>>) -> Self {
        let mut parts = parts.into_iter().flatten();
        let mut all = parts.next().unwrap_or_default();
        for Self { places, key_hashes } in parts {
            all.places.extend(places);
            all.key_hashes.extend(key_hashes);
        }
        all
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
