//! The kind `two-choice`, in memory.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Blob, BuildError, Fill, FilterKind, Full, Gauge, Removal};
use crate::filter::block::Block;
use crate::filter::layout::native::KeyHash;
use crate::filter::two_choice::{Arena, Kernel, Kernels, Key, Probe, Shard, TwoChoiceSize, Work};
use crate::filter::{SHARDS, ShardId, Verdict};

/// Number of keys whose blocks are fetched ahead of the visited key.
const AHEAD: usize = 32;

/// Marks a shard that belongs to another owner.
const FOREIGN: u16 = u16::MAX;

/// Number of saved keys that are read together.
const PAGE: usize = 8192;

/// Shards of a filter of the kind `two-choice` that belong to one owner.
#[derive(Debug)]
pub struct TwoChoiceFilter {
    size: TwoChoiceSize,
    arena: Arena,
    shards: Vec<Shard>,
    /// Index of each shard in `shards`; [`FOREIGN`] for shards of other owners.
    places: [u16; SHARDS],
    kernel: Kernels,
    gauge: Arc<Shown>,
}

impl TwoChoiceFilter {
    /// Makes the empty shards that belong to `owner`, the index of one of `owners` owners.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(in crate::filter) fn new(
        size: TwoChoiceSize,
        owner: usize,
        owners: usize,
    ) -> Result<Self, BuildError> {
        let own: Vec<_> = ShardId::all().filter(|shard| shard.owner(owners) == owner).collect();
        let [first, planned] = [size.capacity, size.grow_to].map(|keys| size.blocks_at(keys));
        // A shard may have a far larger share than the others, and a filter may outgrow `grow_to`.
        let mut arena = Arena::reserve(4 * planned + (1 << 16), first, planned)?;
        let make = |&shard| Shard::with_slots(size.slots(shard, 0), size.bits, &mut arena);
        let shards = own.iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let mut places = [FOREIGN; SHARDS];
        for (shard, place) in own.iter().zip(0..) {
            places[shard.index()] = place;
        }
        let shown = own.into_iter().map(|shard| (shard, ShownShard::default())).collect();
        let gauge = Shown { size, bytes: AtomicU64::new(0), shards: shown };
        let kernel = Kernels::fastest();
        let filter = Self { size, arena, shards, places, kernel, gauge: Arc::new(gauge) };
        filter.show();
        Ok(filter)
    }

    /// Returns the index of a shard.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    #[inline(always)]
    fn place(&self, shard: ShardId) -> usize {
        let place = self.places[shard.index()];
        assert!(place != FOREIGN, "shard {shard} has another owner");
        usize::from(place)
    }

    #[inline(always)]
    fn key(&self, key_hash: KeyHash) -> Key {
        self.size.bits.key(key_hash.h2)
    }

    /// Begins to fetch the blocks of a key.
    #[inline(always)]
    fn look(&self, key_hash: KeyHash, blocks: &[Block]) -> Look {
        let place = self.place(key_hash.shard());
        let probe = self.shards[place].probe(self.key(key_hash), &self.arena);
        probe.fetch(blocks);
        Look { place, probe }
    }

    /// Replaces a shard by an empty one with at least this number of slots.
    fn renew(&mut self, place: usize, slots: u64) -> Result<(), Full> {
        self.shards[place].free(&mut self.arena);
        self.shards[place] = Shard::with_slots(slots, self.size.bits, &mut self.arena)?;
        Ok(())
    }

    /// Reads the keys of a shard, which it replaces.
    fn read(&mut self, shard: ShardId, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let place = self.place(shard);
        self.renew(place, self.size.slots(shard, keys)).map_err(out_of_memory)?;
        let (mut left, bits) = (keys, self.size.bits);
        let mut page = vec![0; PAGE * bits.bytes()];
        while left > 0 {
            let count = left.min(PAGE as u64);
            // At most a page.
            #[allow(clippy::cast_possible_truncation)]
            let page = &mut page[..count as usize * bits.bytes()];
            from.read_exact(page)?;
            let keys = page.chunks_exact(bits.bytes()).map(|bytes| bits.read(bytes));
            let key_hashes = keys.map(|key| Some(bits.key_hash(shard, key?)));
            let key_hashes = key_hashes.collect::<Option<Vec<_>>>();
            self.insert(&key_hashes.ok_or(io::ErrorKind::InvalidData)?).map_err(out_of_memory)?;
            left -= count;
        }
        if self.shards[place].keys() == keys {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    fn make_room(&mut self, shard: ShardId, keys: u64) -> Result<(), Full> {
        if keys == 0 {
            return Ok(());
        }
        let place = self.place(shard);
        let most = self.size.most_in_shard();
        if self.shards[place].keys() + keys > most {
            return Err(Full(format!(
                "shard {shard} of the filter is full: it has {most} fingerprints, an eighth of \
                 filter.grow_to, because the leading bytes of the fingerprints are not evenly \
                 spread. Use fingerprints that are digests, or raise filter.grow_to"
            )));
        }
        let Self { arena, shards, kernel, .. } = self;
        kernel.run(MakeRoom { shard: &mut shards[place], arena, keys })
    }

    /// Iterates over the keys of a shard.
    fn keys_of(&self, shard: ShardId) -> impl Iterator<Item = KeyHash> {
        let keys = self.shards[self.place(shard)].iter(&self.arena);
        keys.map(move |key| self.size.bits.key_hash(shard, key))
    }

    fn show(&self) {
        self.gauge.bytes.store(self.arena.bytes(), Ordering::Relaxed);
        for ((_, shown), shard) in self.gauge.shards.iter().zip(&self.shards) {
            shown.keys.store(shard.keys(), Ordering::Relaxed);
            shown.slots.store(shard.slots(), Ordering::Relaxed);
        }
    }
}

fn out_of_memory(full: Full) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full)
}

impl FilterKind for TwoChoiceFilter {
    fn prefetch(&self, key_hashes: &[KeyHash]) {
        for &key_hash in key_hashes {
            self.look(key_hash, self.arena.blocks());
        }
    }

    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        verdicts.reserve(key_hashes.len());
        self.kernel.run(TestAll { filter: self, key_hashes, verdicts });
    }

    fn reserve(&mut self, keys: &[u64; SHARDS]) -> Result<(), Full> {
        let shards = self.gauge.shards.iter().map(|&(shard, _)| shard);
        let wanted: Vec<_> = shards.map(|shard| (shard, keys[shard.index()])).collect();
        wanted.into_iter().try_for_each(|(shard, keys)| self.make_room(shard, keys))
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let kernel = self.kernel;
        let inserted = kernel.run(InsertAll { filter: self, key_hashes });
        self.show();
        inserted
    }

    fn remove(&mut self, key_hash: KeyHash) -> Removal {
        let (place, key) = (self.place(key_hash.shard()), self.key(key_hash));
        self.shards[place].remove(key, &mut self.arena);
        self.show();
        Removal::Removed
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob> {
        let shard = &self.shards[self.place(shard)];
        Box::new(shard.copy(&self.arena, buffer))
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let loaded = if keys.checked_mul(self.size.bits.bytes() as u64) == Some(len) {
            self.read(shard, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        if loaded.is_err() {
            let place = self.place(shard);
            self.renew(place, self.size.slots(shard, 0)).map_err(out_of_memory)?;
        }
        self.show();
        loaded
    }

    fn key_hashes(&self) -> Option<Vec<KeyHash>> {
        let shards = self.gauge.shards.iter();
        Some(shards.flat_map(|&(shard, _)| self.keys_of(shard)).collect())
    }

    fn shard_key_hashes(&self, shard: ShardId) -> Option<Vec<KeyHash>> {
        Some(self.keys_of(shard).collect())
    }

    fn clear(&mut self) {
        for place in 0..self.shards.len() {
            let (shard, _) = self.gauge.shards[place];
            self.renew(place, self.size.slots(shard, 0)).expect("the shard had more memory");
        }
        self.show();
    }
}

/// Places of a key whose blocks are being fetched.
#[derive(Debug, Clone, Copy)]
struct Look {
    place: usize,
    probe: Probe,
}

/// Work of [`TwoChoiceFilter::test`].
struct TestAll<'a> {
    filter: &'a TwoChoiceFilter,
    key_hashes: &'a [KeyHash],
    verdicts: &'a mut Vec<Verdict>,
}

impl Work for TestAll<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        let Self { filter, key_hashes, verdicts } = self;
        let blocks = filter.arena.blocks();
        let Some(&first) = key_hashes.first() else { return };
        let mut looks = [filter.look(first, blocks); AHEAD];
        for (look, &key_hash) in looks.iter_mut().zip(key_hashes) {
            *look = filter.look(key_hash, blocks);
        }
        for (index, &key_hash) in key_hashes.iter().enumerate() {
            let Look { place, probe } = looks[index % AHEAD];
            let key = filter.key(key_hash);
            verdicts.push(Verdict::of(filter.shards[place].has(key, &probe, kernel, blocks)));
            if let Some(&next) = key_hashes.get(index + AHEAD) {
                looks[index % AHEAD] = filter.look(next, blocks);
            }
        }
    }
}

/// Work of [`TwoChoiceFilter::insert`].
struct InsertAll<'a> {
    filter: &'a mut TwoChoiceFilter,
    key_hashes: &'a [KeyHash],
}

impl Work for InsertAll<'_> {
    type Done = Result<(), Full>;

    #[inline(always)]
    fn by(self, kernel: impl Kernel) -> Result<(), Full> {
        let Self { filter, key_hashes } = self;
        key_hashes.iter().take(AHEAD).for_each(|&key_hash| {
            filter.look(key_hash, filter.arena.blocks());
        });
        for (index, &key_hash) in key_hashes.iter().enumerate() {
            if let Some(&next) = key_hashes.get(index + AHEAD) {
                filter.look(next, filter.arena.blocks());
            }
            let (place, key) = (filter.place(key_hash.shard()), filter.key(key_hash));
            let TwoChoiceFilter { shards, arena, .. } = filter;
            shards[place].make_room(1, kernel, arena)?;
            shards[place].insert(key, kernel, arena);
        }
        Ok(())
    }
}

/// Work of [`TwoChoiceFilter::reserve`] for one shard.
struct MakeRoom<'a> {
    shard: &'a mut Shard,
    arena: &'a mut Arena,
    keys: u64,
}

impl Work for MakeRoom<'_> {
    type Done = Result<(), Full>;

    #[inline(always)]
    fn by(self, kernel: impl Kernel) -> Result<(), Full> {
        self.shard.make_room(self.keys, kernel, self.arena)
    }
}

/// Numbers of keys and slots in an owner's shards, for all threads.
#[derive(Debug)]
struct Shown {
    size: TwoChoiceSize,
    bytes: AtomicU64,
    shards: Vec<(ShardId, ShownShard)>,
}

#[derive(Debug, Default)]
struct ShownShard {
    keys: AtomicU64,
    slots: AtomicU64,
}

impl Shown {
    fn sum(&self, number: impl Fn(&ShownShard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|(_, shard)| number(shard).load(Ordering::Relaxed)).sum()
    }
}

impl Gauge for Shown {
    fn fill(&self) -> Fill {
        let keys = self.sum(|shard| &shard.keys);
        let capacity = self.sum(|shard| &shard.slots) / 10 * 9;
        Fill { keys, counted: keys, capacity, bytes: self.bytes.load(Ordering::Relaxed), layers: 0 }
    }

    fn saved_bytes(&self) -> u64 {
        self.sum(|shard| &shard.keys) * self.size.bits.bytes() as u64
    }

    fn error_rate(&self) -> f64 {
        self.size.error_rate_at(self.sum(|shard| &shard.keys))
    }

    fn keys(&self, keys: &mut [u64; SHARDS]) {
        for (shard, shown) in &self.shards {
            keys[shard.index()] = shown.keys.load(Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "two_choice_tests.rs"]
mod tests;
