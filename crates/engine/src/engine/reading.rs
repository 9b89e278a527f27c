//! Reading of a batch: its items become key hashes, in several parts at the same time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::item::batch::{Batch, Claimed};
use crate::item::key::NoKey;
use crate::item::{Findings, Identity, Options, Reader, Unreadable};
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::{KeyHash, KeyHasher, Lifetime, RedisFilterKeys};
use urlseen_fingerprint::Fingerprint;

/// Number of items that justify one more part of a batch.
pub(super) const PART: usize = 256;

/// Readers with the same options. Each thread takes one while it reads a part.
#[derive(Debug)]
pub(super) struct Readers {
    /// Reader of which each thread gets a clone.
    reader: Reader,
    hasher: KeyHasher,
    /// Keys of the filter in Redis; `None` for a filter in memory.
    pub(super) shared: Option<Arc<RedisFilterKeys>>,
    idle: Mutex<Vec<Reader>>,
}

/// Batch that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) batch: Batch<Claimed>,
    /// True if the batch keeps the fingerprints of its seen items.
    pub(super) keeps_seen: bool,
    readers: Arc<Readers>,
    /// The parts that are read, in the order of the items.
    parts: Vec<Mutex<Option<Part>>>,
    /// Number of parts that are not read yet.
    left: AtomicUsize,
}

/// Part of a batch that is read. Each place is that of an item in the batch.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Places of the items with a fingerprint, ascending, with their keys and fingerprints.
    pub(super) places: Vec<u32>,
    pub(super) key_hashes: Vec<KeyHash>,
    pub(super) fingerprints: Vec<Fingerprint>,
    /// Lifetimes that differ from the default.
    pub(super) lifetimes: Vec<(u32, Lifetime)>,
    /// Findings that need no judge.
    pub(super) found: Findings,
}

impl Readers {
    pub(super) fn new(
        items: Options,
        hasher: KeyHasher,
        expire_after: Option<ExpireAfter>,
        shared: Option<Arc<RedisFilterKeys>>,
    ) -> Self {
        let reader = Reader::new(items).expiring(expire_after);
        Self { reader, hasher, shared, idle: Mutex::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// Begins to read a batch in at most `most` parts.
    pub(super) fn new(
        batch: Batch<Claimed>,
        most: usize,
        keeps_seen: bool,
        readers: &Arc<Readers>,
    ) -> Self {
        let parts = batch.items.len().div_ceil(PART).clamp(1, most);
        Self {
            batch,
            keeps_seen,
            readers: Arc::clone(readers),
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            left: AtomicUsize::new(parts),
        }
    }

    /// Returns the number of parts in which the batch is read.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    fn range(&self, part: usize) -> Range<usize> {
        let (len, parts) = (self.batch.items.len(), self.parts());
        part * len / parts..(part + 1) * len / parts
    }

    /// Reads the items of a part, with an idle reader or a new one.
    pub(super) fn read(&self, part: usize) -> Part {
        let idle = self.readers.idle().pop();
        let mut reader = idle.unwrap_or_else(|| self.readers.reader.clone());
        let range = self.range(part);
        let mut read = Part {
            places: Vec::with_capacity(range.len()),
            key_hashes: Vec::with_capacity(range.len()),
            fingerprints: Vec::with_capacity(range.len()),
            ..Part::default()
        };
        for index in range {
            #[cfg(test)]
            assert_ne!(self.batch.items.get(index), super::threads_tests::PANICS);
            read.push(place(index), self.batch.items.key(index), &mut reader, &self.readers);
        }
        self.readers.idle().push(reader);
        read
    }

    /// Adds a part that was read.
    pub(super) fn add(&self, number: usize, part: Part) {
        *self.parts[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(part);
        self.left.fetch_sub(1, SeqCst);
    }

    /// Returns true if all parts are read.
    pub(super) fn is_done(&self) -> bool {
        self.left.load(SeqCst) == 0
    }

    /// Takes the parts, in the order of the items.
    pub(super) fn take_parts(&self) -> impl Iterator<Item = Part> {
        let take =
            |part: &Mutex<Option<Part>>| part.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.parts.iter().map(move |part| take(part).expect("all parts are read"))
    }
}

impl Part {
    /// Returns the number of items.
    pub(super) fn cost(&self) -> usize {
        let Findings { unfiltered, dropped, rejects, .. } = &self.found;
        let others = unfiltered.len() + dropped.len() + rejects.len();
        (self.places.len() + others).max(1)
    }

    /// Adds what a reader finds in the key of an item.
    fn push(
        &mut self,
        place: u32,
        key: Result<&[u8], NoKey>,
        reader: &mut Reader,
        readers: &Readers,
    ) {
        let found = &mut self.found;
        let item = match key.map_err(Unreadable::from).and_then(|key| reader.read(key)) {
            Ok(item) => item,
            Err(unreadable) => return found.rejects.push((place, unreadable)),
        };
        if let Some(emitted) = item.emitted {
            found.emitted.push((place, emitted));
        }
        if item.score != 0.0 {
            found.scores.push((place, item.score));
        }
        let fingerprint = match item.identity {
            Identity::Unfiltered => return found.unfiltered.push((place, item.passed)),
            Identity::Dropped(rule) => return found.dropped.push((place, rule)),
            Identity::Fingerprint(fingerprint) => fingerprint,
        };
        if let Some(Err(unplaced)) = readers.shared.as_ref().map(|it| it.check(&fingerprint)) {
            return found.rejects.push((place, Unreadable::NoPlace(unplaced)));
        }
        if item.lifetime != Lifetime::default() {
            self.lifetimes.push((place, item.lifetime));
        }
        found.own_fingerprints += usize::from(item.has_own_fingerprint);
        self.places.push(place);
        self.key_hashes.push(readers.hasher.key_hash(&fingerprint));
        self.fingerprints.push(fingerprint);
    }
}

/// Converts the index of an item in its batch to the integer type of the findings.
fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a batch has at most 100,000 items, a buffer of lines 4 GiB")
}
