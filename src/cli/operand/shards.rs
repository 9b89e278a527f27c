//! Filters that are read into memory, shard by shard.

use std::collections::BTreeSet;

use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterKind, SHARDS, ShardId, Verdict};

use super::super::bar::Bar;
use super::super::start::UsageError;

/// Function that reads a shard.
type Read = dyn FnMut(ShardId) -> anyhow::Result<Box<dyn FilterKind>>;

/// Filter that is read shard by shard.
pub(in crate::cli) struct Shards {
    ids: Vec<ShardId>,
    read: Box<Read>,
    /// The shard of a filter in one piece.
    whole: Option<Box<dyn FilterKind>>,
    /// Forgotten keys that have not passed again.
    tombstones: BTreeSet<(ShardId, u128)>,
    /// Layers of the only shard, described.
    pub(super) layers: Vec<String>,
}

impl Shards {
    /// Makes a filter of this number of shards. Reads the only one at once.
    pub(super) fn new(
        count: usize,
        tombstones: BTreeSet<(ShardId, u128)>,
        mut read: Box<Read>,
    ) -> anyhow::Result<Self> {
        let ids = ShardId::all().take(count).collect();
        let mut whole = if count == 1 { Some(read(ShardId::WHOLE)?) } else { None };
        if let Some(empty) = whole.as_mut().filter(|whole| whole.layers().is_empty()) {
            // Makes the first layer.
            empty.reserve(&[1; SHARDS])?;
        }
        let layers = whole.as_ref().map_or_else(Vec::new, |whole| whole.layers());
        Ok(Self { ids, read, whole, tombstones, layers })
    }

    /// Number of fingerprints that were forgotten and have not passed again.
    pub(in crate::cli) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    fn read(&mut self, shard: ShardId) -> anyhow::Result<Box<dyn FilterKind>> {
        self.whole.take().map_or_else(|| (self.read)(shard), Ok)
    }

    fn tombstones_of(&self, shard: ShardId) -> BTreeSet<u128> {
        self.tombstones.range((shard, 0)..=(shard, u128::MAX)).map(|&(_, id)| id).collect()
    }
}

/// A shard of two filters.
pub(in crate::cli) struct Pair {
    pub(in crate::cli) shard: ShardId,
    a: Box<dyn FilterKind>,
    b: Box<dyn FilterKind>,
    /// Forgotten keys of both.
    tombstones: [BTreeSet<u128>; 2],
}

impl Pair {
    /// Reads two filters shard by shard, and counts; `visit` gets each pair of shards.
    pub(in crate::cli) fn walk(
        a: &mut Shards,
        b: &mut Shards,
        mut visit: impl FnMut(Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Counted> {
        let (mut counted, bar) = (Counted::default(), Bar::counting("shards"));
        let all = a.ids.len() as u64;
        for (done, shard) in (1..).zip(a.ids.clone()) {
            let tombstones = [&*a, &*b].map(|side| side.tombstones_of(shard));
            let pair = Self { shard, a: a.read(shard)?, b: b.read(shard)?, tombstones };
            counted.add(&pair)?;
            visit(pair)?;
            bar.show(done, all);
        }
        Ok(counted)
    }

    /// Unites both shards. Returns the filter, and the forgotten keys that neither has as seen.
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
        a.unite(&*b).map_err(|error| UsageError(error.to_string()))?;
        Ok((a, left))
    }
}

/// Counts of two filters.
#[derive(Default)]
pub(in crate::cli) struct Counted {
    /// Keys, as far as the bits tell.
    pub(in crate::cli) totals: Totals,
    /// Numbers of bits that are 1.
    pub(in crate::cli) ones: Ones,
}

impl Counted {
    fn add(&mut self, Pair { a, b, .. }: &Pair) -> anyhow::Result<()> {
        if let (Some(of_a), Some(of_b)) = (a.key_hashes(), b.key_hashes()) {
            let mut verdicts = Vec::new();
            b.test(&of_a, &mut verdicts);
            let common = verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count();
            let [of_a, of_b, common] = [of_a.len(), of_b.len(), common].map(|keys| keys as u64);
            self.totals.add_exact(of_a, of_b, common);
            return Ok(());
        }
        let (Some(of_a), Some(of_b)) = (a.bits(), b.bits()) else {
            let words = "the bits of two filters of this kind do not tell what they have in common";
            return Err(UsageError(words.to_owned()).into());
        };
        for (of_a, of_b) in of_a.iter().zip(of_b) {
            let mut ones = Ones::default();
            ones.add(of_a.bytes, of_b.bytes);
            self.totals.add(&of_a.cells, ones);
            self.ones += ones;
        }
        Ok(())
    }
}
