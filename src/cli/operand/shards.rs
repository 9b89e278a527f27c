//! Filters that commands read into memory, shard by shard.

use std::collections::BTreeSet;

use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterKind, SHARDS, ShardId, Verdict};

use super::super::bar::Bar;
use super::super::start::usage;

/// Function that reads a shard.
type Read = dyn FnMut(ShardId) -> anyhow::Result<Box<dyn FilterKind>>;

/// Filter that a command reads shard by shard.
pub(in crate::cli) struct Shards {
    read: Box<Read>,
    /// Forgotten keys that have not passed again.
    tombstones: BTreeSet<(ShardId, u128)>,
}

impl Shards {
    /// Returns a filter whose shards are read by `read`.
    pub(super) fn new(tombstones: BTreeSet<(ShardId, u128)>, read: Box<Read>) -> Self {
        Self { read, tombstones }
    }

    /// Returns the number of forgotten fingerprints that have not passed again.
    pub(in crate::cli) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    fn tombstones_of(&self, shard: ShardId) -> BTreeSet<u128> {
        self.tombstones.range((shard, 0)..=(shard, u128::MAX)).map(|&(_, id)| id).collect()
    }
}

/// Two shards with the same id, one of each filter.
pub(in crate::cli) struct Pair {
    pub(in crate::cli) shard: ShardId,
    a: Box<dyn FilterKind>,
    b: Box<dyn FilterKind>,
    /// Forgotten keys of each filter.
    tombstones: [BTreeSet<u128>; 2],
}

impl Pair {
    /// Reads two filters shard by shard, and counts their keys. Passes each pair of shards to
    /// `visit`.
    pub(in crate::cli) fn walk(
        a: &mut Shards,
        b: &mut Shards,
        mut visit: impl FnMut(Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Totals> {
        let (mut totals, bar) = (Totals::default(), Bar::counting("shards"));
        for (done, shard) in (1..).zip(ShardId::all()) {
            let tombstones = [&*a, &*b].map(|side| side.tombstones_of(shard));
            let pair = Self { shard, a: (a.read)(shard)?, b: (b.read)(shard)?, tombstones };
            pair.count(&mut totals)?;
            visit(pair)?;
            bar.show(done, SHARDS as u64);
        }
        Ok(totals)
    }

    /// Adds the numbers of keys. They are exact for a kind that stores keys, and else estimated
    /// from the bits.
    fn count(&self, totals: &mut Totals) -> anyhow::Result<()> {
        let Self { a, b, .. } = self;
        if let (Some(of_a), Some(of_b)) = (a.key_hashes(), b.key_hashes()) {
            let mut verdicts = Vec::new();
            b.test(&of_a, &mut verdicts);
            let common = verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count();
            let [of_a, of_b, common] = [of_a.len(), of_b.len(), common].map(|keys| keys as u64);
            totals.add_exact(of_a, of_b, common);
            return Ok(());
        }
        let (Some(of_a), Some(of_b)) = (a.bits(), b.bits()) else {
            return Err(usage("filters of this kind have no common numbers"));
        };
        for (of_a, of_b) in of_a.iter().zip(of_b) {
            let mut ones = Ones::default();
            ones.add(of_a.bytes, of_b.bytes);
            totals.add(&of_a.cells, ones);
        }
        Ok(())
    }

    /// Unites the two shards. Returns the united shard, and the forgotten keys that count as unseen
    /// in both shards.
    pub(in crate::cli) fn unite(self) -> anyhow::Result<(Box<dyn FilterKind>, Vec<u128>)> {
        let Self { shard, mut a, b, tombstones: [by_a, by_b] } = self;
        let is_seen = |filter: &dyn FilterKind, forgotten: &BTreeSet<u128>, id: u128| {
            let mut verdicts = Vec::new();
            filter.test(&[KeyHash::named(shard, id)], &mut verdicts);
            verdicts == [Verdict::Seen] && !forgotten.contains(&id)
        };
        let left = by_a.union(&by_b).copied();
        let left = left.filter(|&id| !is_seen(&*a, &by_a, id) && !is_seen(&*b, &by_b, id));
        let left = left.collect();
        a.unite(&*b).map_err(|error| usage(error.to_string()))?;
        Ok((a, left))
    }
}
