//! Exact filter in memory: a table of key hashes for each shard.

mod shard;
mod shown;

use std::any::Any;
use std::io::{self, Read};
use std::sync::Arc;

use super::{
    Blob, FilterKind, Full, Gauge, Removal, Saved, UniteError, out_of_memory, unite_dated,
};
use crate::filter::ages::Stamp;
use crate::filter::generation::Generation;
use crate::filter::layout::native::KeyHash;
use crate::filter::memory::{self, Available};
use crate::filter::saved_keys::{SavedForm, SavedKeys};
use crate::filter::table::{slot_bytes, slots_for};
use crate::filter::{SHARDS, ShardId, Verdict};
use shard::Shard;
use shown::Shown;

/// Number of keys whose memory is fetched before they are tested.
const AHEAD: usize = 32;

/// Number of slots that are swept together.
const SWEPT: u64 = 8192;

/// Shards of an exact filter that belong to one owner.
#[derive(Debug)]
pub struct ExactShards {
    owner: usize,
    owners: usize,
    /// True if the keys expire.
    expires: bool,
    /// The owned shards, in order.
    shards: Vec<Shard>,
    /// The present generation. All shards are in this generation.
    now: Generation,
    gauge: Arc<Shown>,
    available: fn() -> Option<Available>,
}

/// Returns the form in which the keys of a shard are saved.
fn saved_form(expires: bool) -> SavedForm {
    SavedForm { key_bytes: size_of::<u128>(), expires }
}

impl ExactShards {
    /// Creates the empty shards that belong to `owner`, the index of one of `owners` owners. The
    /// shards take memory as they fill.
    pub(in crate::filter) fn new(expires: bool, owner: usize, owners: usize) -> Self {
        let own = ShardId::all().filter(|shard| shard.owner(owners) == owner);
        let gauge = Arc::new(Shown::new(expires, own));
        let shards = gauge.shards.iter().map(|_| Shard::new(expires)).collect();
        let (now, available) = (Generation::default(), memory::available);
        Self { owner, owners, expires, shards, now, gauge, available }
    }

    /// Returns the memory in bytes of a filter with this number of keys, if they are evenly spread
    /// over the shards.
    pub(in crate::filter) fn bytes_at(keys: u64, expires: bool) -> u64 {
        let shards = SHARDS as u64;
        let slots = || shards * slots_for(keys.div_ceil(shards));
        if keys == 0 { 0 } else { slots() * slot_bytes(expires) }
    }

    /// Returns the index of a shard in `shards`.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    fn place(&self, shard: ShardId) -> usize {
        assert_eq!(shard.owner(self.owners), self.owner, "shard {shard} has another owner");
        shard.index() / self.owners
    }

    /// Makes an empty shard in the present generation.
    fn empty(&self) -> Shard {
        let mut shard = Shard::new(self.expires);
        shard.begin_generation(self.now);
        shard
    }

    /// Reads the keys of a shard, which it replaces.
    fn read(&mut self, place: usize, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let mut saved = SavedKeys::begin(saved_form(self.expires), keys, from)?;
        self.begin_generation(saved.saved_in);
        let mut shard = self.empty();
        shard.make_room(keys, self.available).map_err(out_of_memory)?;
        while let Some(page) = saved.next_page()? {
            for (bytes, generation) in page {
                let key = bytes.try_into().map(u128::from_le_bytes).expect("the bytes of a key");
                let is_live = generation.age_in(self.now).is_some();
                if is_live && !shard.insert(key, Stamp::of(generation)) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
        self.shards[place] = shard;
        Ok(())
    }

    /// Iterates over the keys of a shard, with their generations.
    fn keys_of(&self, shard: ShardId) -> impl Iterator<Item = (KeyHash, Generation)> {
        let keys = self.shards[self.place(shard)].keys();
        keys.map(move |(key, stamp)| (KeyHash::named(shard, key), stamp.generation(self.now)))
    }

    fn show(&self) {
        self.gauge.show(&self.shards);
    }

    /// Shows the shards of these keys, after a change of these shards alone.
    fn show_shards_of(&self, key_hashes: &[KeyHash]) {
        if self.expires || key_hashes.len() >= self.shards.len() {
            return self.show();
        }
        for place in key_hashes.iter().map(|it| self.place(it.shard())) {
            self.gauge.shards[place].1.show(&self.shards[place]);
        }
    }
}

impl FilterKind for ExactShards {
    fn prefetch(&self, key_hashes: &[KeyHash]) {
        for key_hash in key_hashes {
            self.shards[self.place(key_hash.shard())].fetch(key_hash.id());
        }
    }

    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        for chunk in key_hashes.chunks(AHEAD) {
            self.prefetch(chunk);
            verdicts.extend(chunk.iter().map(|key_hash| {
                let shard = &self.shards[self.place(key_hash.shard())];
                Verdict::of(shard.has(key_hash.id()))
            }));
        }
    }

    fn make_room(&mut self, shard: ShardId, keys: u64) -> Result<(), Full> {
        let place = self.place(shard);
        self.shards[place].make_room(keys, self.available)
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.insert_in(self.now, key_hashes)
    }

    fn insert_in(&mut self, generation: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let mut stamp = Stamp::NONE;
        if self.expires && generation != Generation::FOREVER {
            self.begin_generation(generation);
            stamp = Stamp::of(generation);
            if generation.age_in(self.now).is_none() {
                let _: Vec<Removal> = key_hashes.iter().map(|&it| self.remove(it)).collect();
                return Ok(());
            }
        }
        for chunk in key_hashes.chunks(AHEAD) {
            self.prefetch(chunk);
            for key_hash in chunk {
                let place = self.place(key_hash.shard());
                self.shards[place].make_room(1, self.available)?;
                self.shards[place].insert(key_hash.id(), stamp);
            }
        }
        self.show_shards_of(key_hashes);
        Ok(())
    }

    fn begin_generation(&mut self, generation: Generation) {
        if self.expires && generation > self.now {
            self.now = generation;
            self.shards.iter_mut().for_each(|shard| shard.begin_generation(generation));
            self.show();
        }
    }

    fn sweep(&mut self) -> bool {
        let shard = self.shards.iter_mut().find(|shard| shard.dead().is_some());
        let has_expired = shard.is_some();
        if let Some(shard) = shard {
            shard.sweep(SWEPT);
            self.show();
        }
        has_expired
    }

    fn generation(&self, key_hash: KeyHash) -> Option<Generation> {
        if !self.expires {
            return None;
        }
        let stamp = self.shards[self.place(key_hash.shard())].stamp(key_hash.id());
        stamp.map(|stamp| stamp.generation(self.now))
    }

    fn remove(&mut self, key_hash: KeyHash) -> Removal {
        let place = self.place(key_hash.shard());
        self.shards[place].remove(key_hash.id());
        self.show_shards_of(&[key_hash]);
        Removal::Removed
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, mut bytes: Vec<u8>) -> Box<dyn Blob> {
        let keys = self.shards[self.place(shard)].live_keys();
        let form = saved_form(self.expires);
        bytes.clear();
        let len = form.len(keys).and_then(|len| usize::try_from(len).ok());
        bytes.reserve_exact(len.expect("the keys are in memory"));
        bytes.extend(form.begin(keys, self.now).into_iter().flatten());
        for (key_hash, generation) in self.keys_of(shard) {
            bytes.extend(key_hash.id().to_le_bytes());
            bytes.extend(form.age(generation, self.now));
        }
        Box::new(Saved { keys, bytes })
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let place = self.place(shard);
        self.shards[place] = self.empty();
        let loaded = if saved_form(self.expires).len(keys) == Some(len) {
            self.read(place, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        self.show();
        loaded
    }

    fn key_hashes(&self) -> Option<Vec<KeyHash>> {
        let shards = self.gauge.shards.iter();
        Some(shards.flat_map(|&(shard, _)| self.keys_of(shard)).map(|(it, _)| it).collect())
    }

    fn shard_key_hashes(&self, shard: ShardId) -> Option<Vec<KeyHash>> {
        Some(self.keys_of(shard).map(|(key_hash, _)| key_hash).collect())
    }

    fn unite(&mut self, other: &dyn FilterKind) -> Result<(), UniteError> {
        let other: &dyn Any = other;
        let other = other.downcast_ref::<Self>().ok_or(UniteError::Unsupported)?;
        self.begin_generation(other.now);
        for &(shard, _) in &other.gauge.shards {
            unite_dated(self, other.keys_of(shard).collect())?;
        }
        Ok(())
    }

    fn clear(&mut self) {
        let empty = self.shards.iter().map(|_| self.empty()).collect();
        self.shards = empty;
        self.show();
    }
}
