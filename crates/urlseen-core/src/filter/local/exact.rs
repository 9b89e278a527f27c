//! Exact filter in memory: a table of key hashes for each shard.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Blob, Fill, FilterKind, Full, Gauge, Removal, Saved};
use crate::filter::layout::native::KeyHash;
use crate::filter::memory::{self, Available, SPARE};
use crate::filter::table::{SLOT_BYTES, Table, most_keys, slots_for};
use crate::filter::{SHARDS, ShardId, Verdict};

/// Number of keys whose memory is fetched before they are tested.
const AHEAD: usize = 32;

/// Number of bytes up to which a table counts as small. Small tables of all shards together take at
/// most [`SPARE`] bytes.
const SMALL: u64 = SPARE / SHARDS as u64;

/// Number of saved keys that are read together.
const PAGE: usize = 1024;

/// Number of bytes of a saved key.
const KEY_BYTES: usize = size_of::<u128>();

/// Shards of an exact filter that belong to one owner.
#[derive(Debug)]
pub struct ExactShards {
    owner: usize,
    owners: usize,
    /// Tables of the owned shards, in order.
    tables: Vec<Table>,
    gauge: Arc<Shown>,
    available: fn() -> Option<Available>,
}

impl ExactShards {
    /// Creates the empty shards that belong to `owner`, the index of one of `owners` owners. The
    /// shards take memory as they fill.
    pub(in crate::filter) fn new(owner: usize, owners: usize) -> Self {
        let own = ShardId::all().filter(|shard| shard.owner(owners) == owner);
        let shards: Vec<_> = own.map(|shard| (shard, ShownShard::default())).collect();
        let tables = shards.iter().map(|_| Table::default()).collect();
        let gauge = Arc::new(Shown { shards });
        Self { owner, owners, tables, gauge, available: memory::available }
    }

    /// Returns the memory in bytes of a filter with this number of keys, if they are evenly spread
    /// over the shards.
    pub(in crate::filter) fn bytes_at(keys: u64) -> u64 {
        let shards = SHARDS as u64;
        if keys == 0 { 0 } else { shards * slots_for(keys.div_ceil(shards)) * SLOT_BYTES }
    }

    /// Returns the index of a shard's table.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    fn place(&self, shard: ShardId) -> usize {
        assert_eq!(shard.owner(self.owners), self.owner, "shard {shard} has another owner");
        shard.index() / self.owners
    }

    /// Makes room for `keys` more keys in a table.
    fn make_room(&mut self, place: usize, keys: u64) -> Result<(), Full> {
        let table = &self.tables[place];
        let wanted = table.len() as u64 + keys;
        if keys > 0 && wanted > most_keys(table.slots()) {
            let mut grown = allocate(wanted, self.available)?;
            for key in table.keys() {
                grown.insert(key);
            }
            self.tables[place] = grown;
        }
        Ok(())
    }

    /// Reads the keys of a shard into its table.
    fn read(&mut self, place: usize, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let out_of_memory = |full| io::Error::new(io::ErrorKind::OutOfMemory, full);
        let mut table = allocate(keys, self.available).map_err(out_of_memory)?;
        let mut left = usize::try_from(keys).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut page = [[0; KEY_BYTES]; PAGE];
        while left > 0 {
            let page = &mut page[..left.min(PAGE)];
            from.read_exact(page.as_flattened_mut())?;
            if !page.iter().all(|&key| table.insert(u128::from_le_bytes(key))) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            left -= page.len();
        }
        self.tables[place] = table;
        Ok(())
    }

    /// Iterates over the keys of a shard.
    fn keys_of(&self, shard: ShardId) -> impl Iterator<Item = KeyHash> {
        self.tables[self.place(shard)].keys().map(move |key| KeyHash::named(shard, key))
    }

    fn show(&self, place: usize) {
        let (table, (_, shown)) = (&self.tables[place], &self.gauge.shards[place]);
        shown.keys.store(table.len() as u64, Ordering::Relaxed);
        shown.slots.store(table.slots(), Ordering::Relaxed);
    }

    fn show_all(&self) {
        (0..self.tables.len()).for_each(|place| self.show(place));
    }
}

/// Allocates an empty table for this number of keys.
fn allocate(keys: u64, available: fn() -> Option<Available>) -> Result<Table, Full> {
    let slots = slots_for(keys);
    let bytes = slots * SLOT_BYTES;
    // Reading the available memory takes longer than the allocation of a small table.
    let available = if bytes > SMALL { available() } else { None };
    let full = |why| {
        let full = "the exact filter has no memory for more fingerprints";
        Full(format!("{full}: {why}. Give the process more memory"))
    };
    match available {
        Some(Available { bytes: have, limit }) if have < bytes + SPARE => Err(full(format!(
            "a shard needs {bytes} bytes more, {SPARE} must stay free, and {have} are available \
             {limit}"
        ))),
        _ => Table::allocate(slots).map_err(|error| full(error.to_string())),
    }
}

impl FilterKind for ExactShards {
    fn prefetch(&self, key_hashes: &[KeyHash]) {
        for key_hash in key_hashes {
            self.tables[self.place(key_hash.shard())].fetch(key_hash.id());
        }
    }

    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        for chunk in key_hashes.chunks(AHEAD) {
            self.prefetch(chunk);
            verdicts.extend(chunk.iter().map(|key_hash| {
                let table = &self.tables[self.place(key_hash.shard())];
                Verdict::of(table.contains(key_hash.id()))
            }));
        }
    }

    fn reserve(&mut self, keys: &[u64; SHARDS]) -> Result<(), Full> {
        let mut own = (self.owner..SHARDS).step_by(self.owners).enumerate();
        own.try_for_each(|(place, shard)| self.make_room(place, keys[shard]))
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        for chunk in key_hashes.chunks(AHEAD) {
            self.prefetch(chunk);
            for key_hash in chunk {
                let place = self.place(key_hash.shard());
                self.make_room(place, 1)?;
                self.tables[place].insert(key_hash.id());
            }
        }
        self.show_all();
        Ok(())
    }

    fn remove(&mut self, key_hash: KeyHash) -> Removal {
        let place = self.place(key_hash.shard());
        self.tables[place].remove(key_hash.id());
        self.show(place);
        Removal::Removed
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, mut bytes: Vec<u8>) -> Box<dyn Blob> {
        let table = &self.tables[self.place(shard)];
        bytes.clear();
        bytes.reserve_exact(table.len() * KEY_BYTES);
        table.keys().for_each(|key| bytes.extend(key.to_le_bytes()));
        Box::new(Saved { keys: table.len() as u64, bytes })
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let place = self.place(shard);
        self.tables[place] = Table::default();
        let loaded = match keys.checked_mul(SLOT_BYTES) {
            Some(0) if len == 0 => Ok(()),
            Some(expected) if len == expected => self.read(place, keys, from),
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
        self.show(place);
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
        self.tables.iter_mut().for_each(|table| *table = Table::default());
        self.show_all();
    }
}

/// Numbers of keys and slots in an owner's shards. All threads can read these numbers.
#[derive(Debug)]
struct Shown {
    shards: Vec<(ShardId, ShownShard)>,
}

#[derive(Debug, Default)]
struct ShownShard {
    keys: AtomicU64,
    slots: AtomicU64,
}

impl Gauge for Shown {
    fn fill(&self) -> Fill {
        let shards = self.shards.iter().map(|(_, shard)| {
            let keys = shard.keys.load(Ordering::Relaxed);
            let slots = shard.slots.load(Ordering::Relaxed);
            let (capacity, bytes) = (most_keys(slots), slots * SLOT_BYTES);
            Fill { keys, counted: keys, capacity, bytes, layers: 0 }
        });
        shards.sum()
    }

    fn saved_bytes(&self) -> u64 {
        self.fill().keys * KEY_BYTES as u64
    }

    fn keys(&self, keys: &mut [u64; SHARDS]) {
        for (shard, shown) in &self.shards {
            keys[shard.index()] = shown.keys.load(Ordering::Relaxed);
        }
    }
}
