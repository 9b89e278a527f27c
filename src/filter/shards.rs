//! The bits of the shards that one thread owns.

use super::layout::native::{Native, Probe};
use super::prefetch::prefetch;
use super::region::{AllocationError, Region};
use super::{SHARDS, ShardId, Verdict};

/// The shards that are one owner's, in one contiguous region; a whole shard's bits are contiguous
/// in it. Nothing is locked: all that is done to a shard is done by the thread that has this.
///
/// A test misses the processor's caches once per line, so keys are best taken by the batch: while
/// one line is waited for, the others are under way.
///
/// ```
/// # use urlseen::filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict, native::Native};
/// # use urlseen::fingerprint::Fingerprint;
/// # let sizing = Sizing::new("1000".parse()?, "1e-6".parse()?);
/// let native = Native::new(Seed::new(7), sizing.geometry());
/// let mut shards = Shards::allocate(native, 0, 1)?;
/// # let batch = [Fingerprint::Raw20([1; 20]), Fingerprint::Raw20([2; 20])];
/// let probes: Vec<_> = batch.iter().map(|fingerprint| native.probe(fingerprint)).collect();
/// probes.iter().for_each(|&probe| shards.prefetch(probe));
/// for &probe in &probes {
///     if shards.test(probe) == Verdict::Unseen {
///         shards.set(probe);
///     }
/// }
/// # assert!(probes.iter().all(|&probe| shards.test(probe) == Verdict::Seen));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Shards {
    native: Native,
    owner: usize,
    owners: usize,
    /// Lines in a part and in a shard, as indexes.
    part: usize,
    shard: usize,
    region: Region,
    /// Of each shard owned, in the region's order.
    counts: Vec<Count>,
}

/// What is set in a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Keys that set at least one new bit. It falls behind the true number by those that the filter
    /// took for seen.
    pub keys: u64,
    /// Bits that are set.
    pub ones: u64,
}

impl Shards {
    /// Maps the memory of those shards that are `owner`'s, one of `owners` (see
    /// [`ShardId::owner`]), and counts it as empty.
    ///
    /// # Panics
    /// If `owner` is not below `owners`, or there are more owners than shards.
    pub fn allocate(native: Native, owner: usize, owners: usize) -> Result<Self, AllocationError> {
        assert!(owner < owners && owners <= SHARDS, "owner {owner} of {owners}");
        let owned = ShardId::all().filter(|shard| shard.owner(owners) == owner).count();
        let geometry = native.geometry();
        let region = Region::zeroed(geometry.shard_lines() * owned as u64)?;
        // No larger than the region's length, which an index can hold.
        #[allow(clippy::cast_possible_truncation)]
        let (part, shard) = (geometry.lines_per_part() as usize, geometry.shard_lines() as usize);
        let counts = vec![Count::default(); owned];
        Ok(Self { native, owner, owners, part, shard, region, counts })
    }

    /// Begins to fetch the key's lines, to be tested or set soon.
    #[inline]
    pub fn prefetch(&self, probe: Probe) {
        let lines = self.region.lines();
        let mut first = self.first_line(probe);
        for draw in self.native.draws(probe) {
            prefetch(&lines[first + draw.line]);
            first += self.part;
        }
    }

    /// Whether the key was set before.
    ///
    /// # Panics
    /// If the key's shard has another owner.
    #[inline]
    pub fn test(&self, probe: Probe) -> Verdict {
        let lines = self.region.lines();
        let mut first = self.first_line(probe);
        let seen = self.native.draws(probe).all(|draw| {
            let line = &lines[first + draw.line];
            first += self.part;
            line.holds(draw)
        });
        Verdict::of(seen)
    }

    /// Sets the key; how many bits were not set before, none if it was seen.
    ///
    /// # Panics
    /// If the key's shard has another owner.
    #[inline]
    pub fn set(&mut self, probe: Probe) -> u32 {
        let mut first = self.first_line(probe);
        let slot = self.slot(probe);
        let lines = self.region.lines_mut();
        let mut new = 0;
        for draw in self.native.draws(probe) {
            new += lines[first + draw.line].set(draw);
            first += self.part;
        }
        let count = &mut self.counts[slot];
        count.keys += u64::from(new > 0);
        count.ones += u64::from(new);
        new
    }

    /// What is set in each shard owned.
    pub fn counts(&self) -> impl Iterator<Item = (ShardId, Count)> {
        let owned = ShardId::all().filter(|shard| shard.owner(self.owners) == self.owner);
        owned.zip(self.counts.iter().copied())
    }

    /// Where the key's shard begins.
    #[inline]
    fn first_line(&self, probe: Probe) -> usize {
        self.slot(probe) * self.shard
    }

    /// The place of the key's shard among those owned.
    #[inline]
    fn slot(&self, probe: Probe) -> usize {
        let shard = probe.shard();
        assert!(
            shard.owner(self.owners) == self.owner,
            "shard {shard} is not one of owner {} of {}",
            self.owner,
            self.owners
        );
        shard.index() / self.owners
    }
}
