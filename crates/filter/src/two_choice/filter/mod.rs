//! The kind `two-choice`, in memory.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ages::Stamp;
use crate::generation::{Generation, Generations};
use crate::local::shown::Shown;
use crate::local::{
    Ages, Blob, BuildError, Effort, Fill, FilterKind, Full, Gauge, insert_dated, out_of_memory,
};
use crate::region::Block;
use crate::saved_keys::SavedKeys;
use crate::two_choice::{Arena, Kernel, Kernels, Key, Probe, Shard, TwoChoiceSize, Work};
use crate::{BLOCK_BYTES, KeyHash, ShardId, Verdict};

/// Number of keys that are looked up one after the other, so that the processor waits for the
/// places of several keys at the same time.
const GROUP: usize = 8;

/// Number of keys whose blocks are fetched ahead of the visited group.
const AHEAD: usize = 4 * GROUP;

/// Number of blocks that are swept together.
const SWEPT: u64 = 4096;

/// Shards of a filter of the kind `two-choice`.
#[derive(Debug)]
pub(crate) struct TwoChoiceFilter {
    size: TwoChoiceSize,
    arena: Arena,
    shards: Vec<Shard>,
    kernel: Kernels,
    /// The present generation. All shards are in this generation.
    now: Generation,
    /// True if slots may have expired keys.
    has_expired: bool,
    gauge: Arc<Sizes>,
}

impl TwoChoiceFilter {
    /// Makes the empty shards.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(crate) fn new(size: TwoChoiceSize) -> Result<Self, BuildError> {
        let [first, planned] = [size.capacity, size.grow_to].map(|keys| size.blocks_at(keys));
        let mut arena = Arena::reserve(first, planned)?;
        let make =
            |shard| Shard::with_slots(size.slots(shard, 0), size.bits, size.expires, &mut arena);
        let shards = ShardId::all().map(make).collect::<Result<Vec<_>, _>>()?;
        let (generations, shown) = (Mutex::default(), Shown::default());
        let gauge = Arc::new(Sizes { size, generations, shown });
        let (kernel, now) = (Kernels::fastest(), Generation::default());
        let filter = Self { size, arena, shards, kernel, now, has_expired: false, gauge };
        filter.show();
        Ok(filter)
    }

    #[inline(always)]
    fn key(&self, key_hash: KeyHash) -> Key {
        self.size.bits.key(key_hash.h2)
    }

    /// Begins to fetch the blocks of a key.
    #[inline(always)]
    fn look(&self, key_hash: KeyHash, blocks: &[Block]) -> Look {
        let place = key_hash.shard().index();
        let probe = self.shards[place].probe(self.key(key_hash), &self.arena);
        probe.fetch(blocks);
        Look { place, probe }
    }

    /// Replaces a shard by an empty one with at least this number of slots. An empty shard stays if
    /// that fails.
    fn renew(&mut self, shard: ShardId, slots: u64) -> Result<(), Full> {
        let shard = &mut self.shards[shard.index()];
        // The memory of an empty shard is not touched.
        if shard.keys > 0 || shard.slots() < slots {
            if shard.keys > 0 {
                shard.free(&mut self.arena);
            }
            let TwoChoiceSize { bits, expires, .. } = self.size;
            let empty = Shard::with_slots(slots, bits, expires, &mut self.arena)?;
            std::mem::replace(shard, empty).free(&mut self.arena);
        }
        shard.begin_generation(self.now, &mut self.arena);
        Ok(())
    }

    fn insert_stamped(&mut self, stamp: Stamp, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let kernel = self.kernel;
        let inserted = kernel.run(InsertAll { filter: self, key_hashes, stamp });
        self.show_shards_of(key_hashes);
        inserted
    }

    fn show(&self) {
        self.gauge.show(&self.shards);
    }

    /// Shows the shards of these keys, after a change of these shards alone.
    fn show_shards_of(&self, key_hashes: &[KeyHash]) {
        if self.size.expires {
            return self.show();
        }
        self.gauge.shown.show_shards_of(key_hashes, |shard| numbers(&self.shards[shard]));
    }
}

impl FilterKind for TwoChoiceFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        verdicts.reserve(key_hashes.len());
        self.kernel.run(TestAll { filter: self, key_hashes, verdicts });
    }

    fn reserve(&mut self, id: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        let shard = &self.shards[id.index()];
        if effort == Effort::Short {
            return Ok(shard.has_room(keys));
        }
        if shard.keys == 0 {
            // An empty shard gets its final size at once, and so moves no key.
            self.renew(id, self.size.slots(id, keys))?;
        }
        let Self { arena, shards, kernel, .. } = self;
        let shard = &mut shards[id.index()];
        kernel.run(MakeRoom { shard, arena, keys })?;
        Ok(true)
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.insert_stamped(Stamp::NONE, key_hashes)
    }

    fn remove(&mut self, key_hash: KeyHash) -> bool {
        let (place, key) = (key_hash.shard().index(), self.key(key_hash));
        self.shards[place].remove(key, &mut self.arena);
        self.show_shards_of(&[key_hash]);
        true
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob> {
        let shard = &self.shards[shard.index()];
        Box::new(shard.copy(&self.arena, buffer))
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let loaded = if self.size.saved_form().len(keys) == Some(len) {
            self.read(shard, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        if loaded.is_err() {
            self.renew(shard, self.size.slots(shard, 0)).map_err(out_of_memory)?;
        }
        self.show();
        loaded
    }

    fn clear(&mut self) {
        for shard in ShardId::all() {
            self.renew(shard, self.size.slots(shard, 0)).expect("the shard had more memory");
        }
        self.show();
    }

    fn ages(&mut self) -> Option<&mut dyn Ages> {
        self.size.expires.then_some(self as &mut dyn Ages)
    }
}

impl Ages for TwoChoiceFilter {
    fn begin(&mut self, generation: Generation) {
        if generation > self.now {
            self.now = generation;
            let Self { shards, arena, .. } = self;
            for shard in shards {
                shard.begin_generation(generation, arena);
            }
            self.has_expired = true;
            self.show();
        }
    }

    fn insert_in(&mut self, generation: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        if generation == Generation::FOREVER {
            return self.insert(key_hashes);
        }
        self.begin(generation);
        if generation.age_in(self.now).is_some() {
            return self.insert_stamped(Stamp::of(generation), key_hashes);
        }
        for &key_hash in key_hashes {
            self.remove(key_hash);
        }
        Ok(())
    }

    fn sweep(&mut self) -> bool {
        let Self { shards, arena, .. } = self;
        let shard = shards.iter_mut().find(|shard| shard.dead().is_some());
        self.has_expired = shard.is_some();
        if let Some(shard) = shard {
            shard.sweep(SWEPT, arena);
            self.show();
        }
        self.has_expired
    }

    fn generation(&self, key_hash: KeyHash) -> Option<Generation> {
        let Look { place, probe } = self.look(key_hash, self.arena.blocks());
        let stamp = self.shards[place].stamp(self.key(key_hash), &probe, self.arena.blocks())?;
        let generation = stamp.generation(self.now);
        generation.age_in(self.now).map(|_| generation)
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
        let mut later = key_hashes.chunks(GROUP).skip(AHEAD / GROUP);
        for (number, group) in key_hashes.chunks(GROUP).enumerate() {
            let looks = &mut looks[number * GROUP % AHEAD..][..GROUP];
            for (Look { place, probe }, &key_hash) in looks.iter().zip(group) {
                let (shard, key) = (&filter.shards[*place], filter.key(key_hash));
                let is_seen = if filter.has_expired {
                    shard.has_live(key, probe, kernel, blocks)
                } else {
                    shard.has(key, probe, kernel, blocks)
                };
                verdicts.push(Verdict::of(is_seen));
            }
            for (look, &key_hash) in looks.iter_mut().zip(later.next().unwrap_or_default()) {
                *look = filter.look(key_hash, blocks);
            }
        }
    }
}

/// Work of [`TwoChoiceFilter::insert_stamped`].
struct InsertAll<'a> {
    filter: &'a mut TwoChoiceFilter,
    key_hashes: &'a [KeyHash],
    stamp: Stamp,
}

impl Work for InsertAll<'_> {
    type Done = Result<(), Full>;

    #[inline(always)]
    fn by(self, kernel: impl Kernel) -> Result<(), Full> {
        let Self { filter, key_hashes, stamp } = self;
        key_hashes.iter().take(AHEAD).for_each(|&key_hash| {
            filter.look(key_hash, filter.arena.blocks());
        });
        let mut later = key_hashes.chunks(GROUP).skip(AHEAD / GROUP);
        for group in key_hashes.chunks(GROUP) {
            for &key_hash in later.next().unwrap_or_default() {
                filter.look(key_hash, filter.arena.blocks());
            }
            for &key_hash in group {
                let (place, key) = (key_hash.shard().index(), filter.key(key_hash));
                let TwoChoiceFilter { shards, arena, .. } = filter;
                shards[place].make_room(1, kernel, arena)?;
                shards[place].insert(key, stamp, kernel, arena);
            }
        }
        Ok(())
    }
}

/// Work of [`TwoChoiceFilter::reserve`].
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

impl TwoChoiceFilter {
    /// Reads the keys of a shard, which it replaces.
    fn read(&mut self, shard: ShardId, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        self.renew(shard, self.size.slots(shard, keys)).map_err(out_of_memory)?;
        let mut saved = SavedKeys::begin(self.size.saved_form(), keys, from)?;
        self.begin(saved.saved_in);
        let mut expired = 0;
        while let Some(page) = saved.next_page()? {
            let bits = self.size.bits;
            let key_hash = |bytes| bits.read(bytes).map(|key| bits.key_hash(shard, key));
            let keys =
                page.into_iter().map(|(bytes, generation)| Some((key_hash(bytes)?, generation)));
            let keys = keys.collect::<Option<Vec<_>>>().ok_or(io::ErrorKind::InvalidData)?;
            expired += keys.iter().filter(|(_, it)| it.age_in(self.now).is_none()).count() as u64;
            insert_dated(self, keys).map_err(out_of_memory)?;
        }
        if self.shards[shard.index()].live_keys() + expired == keys {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

/// Numbers of keys, slots and blocks, and the generations of the keys.
#[derive(Debug)]
struct Sizes {
    size: TwoChoiceSize,
    generations: Mutex<Generations>,
    shown: Shown<3>,
}

impl Sizes {
    /// Shows the present state of the shards.
    fn show(&self, shards: &[Shard]) {
        self.shown.show(|shard| numbers(&shards[shard]));
        if self.size.expires {
            let shards = shards.iter().filter_map(Shard::generations);
            let all = shards.fold(Generations::default(), |all, shard| all.with(&shard));
            *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = all;
        }
    }
}

/// Returns the numbers of a shard.
fn numbers(shard: &Shard) -> [u64; 3] {
    [shard.live_keys(), shard.slots(), shard.block_count()]
}

impl Gauge for Sizes {
    fn fill(&self) -> Fill {
        let [keys, slots, blocks] = self.shown.sums();
        let (capacity, bytes) = (slots / 10 * 9, blocks * u64::from(BLOCK_BYTES));
        Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }
    }

    fn saved_bytes(&self) -> u64 {
        self.fill().keys * self.size.saved_form().key() as u64
    }

    fn generations(&self) -> Option<Generations> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.size.expires.then_some(*generations)
    }

    fn error_rate(&self) -> f64 {
        self.size.error_rate_at(self.fill().keys)
    }
}

#[cfg(test)]
mod tests;
