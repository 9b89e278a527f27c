//! Where the lines of keys are in the region of one owner.

// What a way is to be compiled for must be inlined into it, see `Work::by`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::layout::native::{KeyHash, Native};
use super::line::Line;
use super::prefetch::prefetch;
use super::{SHARDS, ShardId};

/// How many keys are fetched ahead of the one that is visited: measured; half or twice as many do
/// about as well.
const AHEAD: usize = 64;

/// The slot of a shard that another owner has.
const FOREIGN: u16 = u16::MAX;

/// The places of one owner's shards in its region, and of keys' lines in those.
#[derive(Debug)]
pub struct Places {
    pub(super) native: Native,
    /// The place of each shard in the region, [`FOREIGN`] for those of other owners.
    slots: [u16; SHARDS],
    shard_lines: usize,
}

impl Places {
    /// The places of those shards that are `owner`'s, one of `owners`; and how many
    /// these shards are.
    pub(super) fn new(native: Native, owner: usize, owners: usize) -> (Self, usize) {
        let mut slots = [FOREIGN; SHARDS];
        let mine = ShardId::all().filter(|shard| shard.owner(owners) == owner);
        let held = mine.zip(0..).map(|(shard, slot)| slots[shard.index()] = slot).count();
        // Where that does not fit, the region is refused.
        let shard_lines = usize::try_from(native.geometry().shard_lines()).unwrap_or(usize::MAX);
        (Self { native, slots, shard_lines }, held)
    }

    /// Whether the shard is this owner's.
    #[inline]
    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.slots[shard.index()] != FOREIGN
    }

    /// The place of a shard in the region, counted in shards.
    ///
    /// # Panics
    /// If another owner has it.
    #[inline(always)]
    pub(super) fn slot(&self, shard: ShardId) -> usize {
        let slot = self.slots[shard.index()];
        assert!(slot != FOREIGN, "shard {shard} has another owner");
        usize::from(slot)
    }

    /// The places of a shard's lines.
    ///
    /// # Panics
    /// As [`Places::slot`].
    pub(super) fn range(&self, shard: ShardId) -> Range<usize> {
        let first = self.slot(shard) * self.shard_lines;
        first..first + self.shard_lines
    }

    /// The places of the key's lines, of which there must be `LINES`.
    #[inline(always)]
    fn of<const LINES: usize>(&self, key_hash: KeyHash) -> [usize; LINES] {
        let first = self.slot(key_hash.shard()) * self.shard_lines;
        std::array::from_fn(|part| first + self.native.line(key_hash, part))
    }

    /// Begins to fetch the key's lines, however many they are.
    #[inline]
    pub(super) fn fetch(&self, lines: &[Line], key_hash: KeyHash) {
        let first = self.slot(key_hash.shard()) * self.shard_lines;
        for part in 0..self.native.geometry().lines().get() as usize {
            prefetch(&lines[first + self.native.line(key_hash, part)]);
        }
    }

    /// Calls `visit` with each key in turn and the places of its lines in `lines`, which are on
    /// their way from memory by then: the keys behind it are under way as well.
    #[inline(always)]
    pub(super) fn visit<Region: AsRef<[Line]>, const LINES: usize>(
        &self,
        mut lines: Region,
        key_hashes: impl Iterator<Item = KeyHash> + Clone,
        mut visit: impl FnMut(&mut Region, KeyHash, [usize; LINES]),
    ) {
        let fetch = |lines: &[Line], key_hash| {
            let places = self.of(key_hash);
            for place in places {
                prefetch(&lines[place]);
            }
            places
        };
        let mut coming = key_hashes.clone();
        let mut under_way = [[0; LINES]; AHEAD];
        for (places, key_hash) in under_way.iter_mut().zip(&mut coming) {
            *places = fetch(lines.as_ref(), key_hash);
        }
        for (number, key_hash) in key_hashes.enumerate() {
            let under_way = &mut under_way[number % AHEAD];
            let places = *under_way;
            if let Some(key_hash) = coming.next() {
                *under_way = fetch(lines.as_ref(), key_hash);
            }
            visit(&mut lines, key_hash, places);
        }
    }
}
