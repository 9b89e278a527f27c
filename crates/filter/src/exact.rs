//! Exact kind: a hash table of key hashes for each shard, in the memory of this process.
//!
//! A key hash has 128 bits. An unseen fingerprint counts as seen only if it has the same hash as a
//! fingerprint in the filter. The chance is 2^-128 for each fingerprint in the filter.

use std::io::{self, Read};
use std::sync::Arc;

use hashbrown::HashTable;

use crate::SpecError;
use crate::choice::FilterPlace;
use crate::kinds::kind::{IN_REDIS, Kind, KindParameters, Registered, SEED};
use crate::local::shown::Shown;
use crate::local::{Blob, Effort, Fill, FilterKind, Full, Gauge, Saved, out_of_memory};
use crate::memory::{self, Available, SPARE};
use crate::saved_keys::{SavedForm, SavedKeys};
use crate::{BuildError, KeyHash, Outlook, SHARD_RULE, SHARDS, Seed, ShardId, Verdict};

/// Number of bytes of a saved key.
const SAVED: usize = size_of::<u128>();

/// Form in which the keys of a shard are saved: their ids, the lowest byte first.
const FORM: SavedForm = SavedForm { key_bytes: SAVED, expires: false };

/// Number of bytes up to which a table counts as small. Small tables of all shards together take at
/// most a quarter of [`SPARE`].
const SMALL: u64 = SPARE / 4 / SHARDS as u64;

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "exact",
    keys: &[SEED],
    places: &[FilterPlace::Local],
    grows: true,
    is_exact: true,
    rules: ["murmur3-x64-128", SHARD_RULE],
    read: |_| Ok(Arc::new(ExactParameters)),
    ..IN_REDIS
});

#[derive(Debug)]
struct ExactParameters;

impl KindParameters for ExactParameters {
    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn shape(&self) -> String {
        "it grows by itself".to_owned()
    }

    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(Outlook { bytes: [ExactShards::bytes_at(keys); 2], ..Outlook::default() })
    }

    fn build(&self, _: Seed) -> Option<Result<Box<dyn FilterKind>, BuildError>> {
        let filter = ExactShards::new();
        Some(filter.map(|filter| Box::new(filter) as _).map_err(BuildError::from))
    }
}

/// Shards of an exact filter.
#[derive(Debug)]
pub(crate) struct ExactShards {
    /// Keys of each shard, in order.
    shards: Vec<HashTable<u128>>,
    gauge: Arc<ExactGauge>,
    available: fn() -> Option<Available>,
}

/// Returns the hash of a key. A key is a hash itself.
fn hash(key: &u128) -> u64 {
    // The lower half.
    #[allow(clippy::cast_possible_truncation)]
    let hash = *key as u64;
    hash
}

/// Returns the memory in bytes of a table that has grown to this number of keys: a power of two of
/// slots, at most seven eighths of them full. A slot has a byte beside its key.
fn table_bytes(keys: u64) -> u64 {
    let slots = keys.saturating_mul(8).div_ceil(7).next_power_of_two();
    if keys == 0 { 0 } else { slots.saturating_mul(SAVED as u64 + 1) }
}

/// Makes the error of a filter that gets no more memory.
fn full(why: impl std::fmt::Display) -> Full {
    let full = "the exact filter has no memory for more fingerprints";
    Full(format!("{full}: {why}. Give the process more memory"))
}

impl ExactShards {
    /// Creates the empty shards. They take memory as they fill.
    ///
    /// # Errors
    /// The process has too little memory for any fingerprint.
    pub(crate) fn new() -> Result<Self, Full> {
        let shards = vec![HashTable::new(); SHARDS];
        let filter = Self { shards, gauge: Arc::default(), available: memory::allocatable };
        filter.check_available(0)?;
        Ok(filter)
    }

    /// Returns the memory in bytes of a filter with this number of keys, if they are evenly spread
    /// over the shards.
    pub(crate) fn bytes_at(keys: u64) -> u64 {
        let shards = SHARDS as u64;
        shards.saturating_mul(table_bytes(keys.div_ceil(shards)))
    }

    /// Checks that a table of this number of bytes leaves enough memory to the rest of the process,
    /// which would end without a message if it got none.
    fn check_available(&self, bytes: u64) -> Result<(), Full> {
        match (self.available)() {
            Some(Available { bytes: have, limit }) if have < bytes.saturating_add(SPARE) => {
                let needed = bytes.saturating_add(SPARE);
                Err(full(format!(
                    "{needed} bytes are needed, {SPARE} of them for the rest of the process, and \
                     {have} are available {limit}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Reads the keys of a shard.
    fn read(
        &mut self,
        shard: ShardId,
        keys: u64,
        from: &mut dyn Read,
    ) -> io::Result<HashTable<u128>> {
        self.reserve(shard, keys, Effort::Any).map_err(out_of_memory)?;
        let mut table = std::mem::take(&mut self.shards[shard.index()]);
        let mut saved = SavedKeys::begin(FORM, keys, from)?;
        while let Some(page) = saved.next_page()? {
            for (bytes, _) in page {
                let key = u128::from_le_bytes(bytes.try_into().expect("the bytes of a key"));
                if table.find(hash(&key), |&it| it == key).is_some() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                table.insert_unique(hash(&key), key, hash);
            }
        }
        Ok(table)
    }

    /// Returns the numbers for the gauge.
    fn numbers(&self, shard: usize) -> [u64; 3] {
        let table = &self.shards[shard];
        [table.len(), table.capacity(), table.allocation_size()].map(|number| number as u64)
    }

    fn show(&self) {
        self.gauge.0.show(|shard| self.numbers(shard));
    }

    fn show_shards_of(&self, key_hashes: &[KeyHash]) {
        self.gauge.0.show_shards_of(key_hashes, |shard| self.numbers(shard));
    }
}

impl FilterKind for ExactShards {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        verdicts.extend(key_hashes.iter().map(|key_hash| {
            let (table, key) = (&self.shards[key_hash.shard().index()], key_hash.id());
            Verdict::of(table.find(hash(&key), |&it| it == key).is_some())
        }));
    }

    fn reserve(&mut self, shard: ShardId, keys: u64, effort: Effort) -> Result<bool, Full> {
        let place = shard.index();
        let table = &self.shards[place];
        let has_room = (table.capacity() - table.len()) as u64 >= keys;
        if has_room || effort == Effort::Short {
            return Ok(has_room);
        }
        let keys = usize::try_from(keys).map_err(full)?;
        let bytes = table_bytes(table.len().saturating_add(keys) as u64);
        // Reading the available memory takes longer than the growth of a small table.
        if bytes > SMALL {
            self.check_available(bytes)?;
        }
        let grown = self.shards[place].try_reserve(keys, hash);
        grown.map_err(|_| full(format!("the system refused {bytes} bytes")))?;
        Ok(true)
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        for key_hash in key_hashes {
            self.reserve(key_hash.shard(), 1, Effort::Any)?;
            let (place, key) = (key_hash.shard().index(), key_hash.id());
            self.shards[place].entry(hash(&key), |&it| it == key, hash).or_insert(key);
        }
        self.show_shards_of(key_hashes);
        Ok(())
    }

    fn remove(&mut self, key_hash: KeyHash) -> bool {
        let (place, key) = (key_hash.shard().index(), key_hash.id());
        if let Ok(found) = self.shards[place].find_entry(hash(&key), |&it| it == key) {
            found.remove();
        }
        self.show_shards_of(&[key_hash]);
        true
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, mut bytes: Vec<u8>) -> Box<dyn Blob> {
        let table = &self.shards[shard.index()];
        bytes.clear();
        bytes.reserve_exact(table.len() * SAVED);
        bytes.extend(table.iter().flat_map(|key| key.to_le_bytes()));
        Box::new(Saved { keys: table.len() as u64, bytes, has_ids: true })
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let place = shard.index();
        self.shards[place].clear();
        let loaded = if FORM.len(keys) == Some(len) {
            self.read(shard, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        let loaded = loaded.map(|table| self.shards[place] = table);
        self.show();
        loaded
    }

    fn clear(&mut self) {
        self.shards.fill_with(HashTable::new);
        self.show();
    }
}

/// Numbers of keys and of places for keys, and the memory in bytes.
#[derive(Debug, Default)]
struct ExactGauge(Shown<3>);

impl Gauge for ExactGauge {
    fn fill(&self) -> Fill {
        let [keys, capacity, bytes] = self.0.sums();
        Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }
    }

    fn saved_bytes(&self) -> u64 {
        self.fill().keys * SAVED as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Limit;

    #[test]
    fn the_size_of_a_table_is_computed_as_the_table_computes_it() {
        for keys in [15, 28, 29, 1000, 7168, 7169] {
            let mut table = HashTable::<u128>::new();
            table.reserve(keys, hash);
            let (bytes, computed) = (table.allocation_size() as u64, table_bytes(keys as u64));
            // The table repeats the bytes of its first slots.
            assert!((computed..computed + 64).contains(&bytes), "{keys}: {bytes}, {computed}");
        }
        assert_eq!((ExactShards::bytes_at(0), table_bytes(u64::MAX)), (0, u64::MAX));
    }

    #[test]
    fn a_filter_without_memory_is_full_and_keeps_its_keys() {
        let mut filter = ExactShards::new().unwrap();
        let shard = ShardId::all().next().unwrap();
        let key_hashes: Vec<_> = (0..20_000).map(|it| KeyHash::named(shard, it)).collect();
        filter.available = || Some(Available { bytes: SPARE + 500_000, limit: Limit::Machine });
        let Full(why) = filter.insert(&key_hashes).unwrap_err();
        assert!(why.contains("67665920 bytes are needed") && why.ends_with("more memory"), "{why}");
        assert_eq!(filter.shards[0].len(), 7168 * 2);
    }
}
