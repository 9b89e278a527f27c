//! Filters that commands read into memory, shard by shard.

use std::collections::BTreeSet;

use urlseen_analysis::{Ones, Totals};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterKind, ShardId, Verdict};

use super::super::bar::Bar;
use super::super::start::usage;

/// Function that reads a shard.
type Read = dyn FnMut(ShardId) -> anyhow::Result<Box<dyn FilterKind>>;

/// Filter that a command reads shard by shard.
pub(in crate::cli) struct Shards {
    ids: Vec<ShardId>,
    read: Box<Read>,
    /// The shard that is already read. Only a filter with one shard has it.
    whole: Option<Box<dyn FilterKind>>,
    /// Forgotten keys that have not passed again.
    tombstones: BTreeSet<(ShardId, u128)>,
    /// Description of each layer of the only shard.
    pub(super) layers: Vec<String>,
}

impl Shards {
    /// Returns a filter with `count` shards. If there is only one shard, reads it at once.
    pub(super) fn new(
        count: usize,
        tombstones: BTreeSet<(ShardId, u128)>,
        mut read: Box<Read>,
    ) -> anyhow::Result<Self> {
        let ids = ShardId::all().take(count).collect();
        let mut whole = if count == 1 { Some(read(ShardId::WHOLE)?) } else { None };
        if let Some(empty) = whole.as_mut().filter(|whole| whole.layers().is_empty()) {
            // Room for a key creates the first layer.
            empty.make_room(ShardId::WHOLE, 1)?;
        }
        let layers = whole.as_ref().map_or_else(Vec::new, |whole| whole.layers());
        Ok(Self { ids, read, whole, tombstones, layers })
    }

    /// Returns the number of forgotten fingerprints that have not passed again.
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

/// Two shards with the same id, one of each filter.
pub(in crate::cli) struct Pair {
    pub(in crate::cli) shard: ShardId,
    a: Box<dyn FilterKind>,
    b: Box<dyn FilterKind>,
    /// Forgotten keys of each filter.
    tombstones: [BTreeSet<u128>; 2],
}

impl Pair {
    /// Reads two filters shard by shard, and counts their keys and bits. Passes each pair of shards
    /// to `visit`.
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

/// Counts of two filters.
#[derive(Default)]
pub(in crate::cli) struct Counted {
    /// Numbers of keys: exact for filters that can list their keys, else estimated from the bits.
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
            let words =
                "the bits of two filters of this kind do not permit an estimate of their overlap";
            return Err(usage(words));
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
