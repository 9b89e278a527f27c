//! Telling, once each, that a filter has become as full as it was made for, or fuller.

use super::{Estimate, SHARDS, ShardId, Sizing};

/// How full a filter may become before the next warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 80 % of capacity: time to plan.
    Nearly,
    /// 100 %: the error rate is what was asked for and grows from here.
    Full,
    /// 150 %: the error rate is many times what was asked for.
    Over,
}

impl Level {
    /// All of them, highest first.
    const DESCENDING: [Self; 3] = [Self::Over, Self::Full, Self::Nearly];

    /// Percent of capacity.
    pub fn percent(self) -> u32 {
        match self {
            Self::Nearly => 80,
            Self::Full => 100,
            Self::Over => 150,
        }
    }
}

/// What has crossed a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The filter as a whole.
    Whole,
    /// One shard, while the others are less full: leading bytes are not evenly spread.
    Shard(ShardId),
}

/// A level newly crossed, with what a warning says about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// The highest level crossed.
    pub level: Level,
    /// What crossed it.
    pub extent: Extent,
    /// Keys in the whole filter.
    pub keys: u64,
    /// The filter's error rate as it is now.
    pub error_rate: f64,
}

/// A warning: what is how full, what that means now, and what to do.
impl std::fmt::Display for Crossing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { level, extent, keys, error_rate } = self;
        match extent {
            Extent::Whole => write!(f, "the filter has {keys} fingerprints")?,
            Extent::Shard(shard) => write!(
                f,
                "shard {shard} of the filter is fuller than the others (leading bytes are not \
                 evenly spread)"
            )?,
        }
        write!(
            f,
            ", {} % of what it is made for: of unseen ones it now takes a share of \
             {error_rate:.1e} for seen. Give the next run a larger filter.capacity",
            level.percent()
        )
    }
}

/// Which levels a filter has crossed so far.
///
/// The whole filter crosses a level with its number of keys. A shard crosses it with more keys than
/// that share of 1/256 of the capacity *and* than chance explains: with evenly spread keys, a shard
/// that is due m has m + t or more with a chance of at most exp(−t² / 2(m + t/3)) (Bernstein's
/// inequality; counts only grow, so looking often does not add to it). t is chosen for 1e-12 a
/// shard: a small filter's shards differ widely and that is no news, a large one's differ by
/// percents and ten percent is.
#[derive(Debug, Clone)]
pub struct Fullness {
    sizing: Sizing,
    told: Option<Level>,
}

impl Fullness {
    /// For a filter of this size that no level was told of yet.
    pub fn new(sizing: Sizing) -> Self {
        Self { sizing, told: None }
    }

    /// The highest level that these keys per shard (by [`ShardId::index`]) have crossed, if it is
    /// higher than any told before. Takes a few microseconds.
    pub fn observe(&mut self, keys: &[u64; SHARDS]) -> Option<Crossing> {
        let total = keys.iter().sum();
        let (level, extent) = Level::DESCENDING
            .into_iter()
            .take_while(|&level| Some(level) > self.told)
            .find_map(|level| Some((level, self.crossed(level, total, keys)?)))?;
        self.told = Some(level);
        let error_rate = self.sizing.geometry().error_rate_of(keys);
        Some(Crossing { level, extent, keys: total, error_rate })
    }

    /// The same where only the whole is known.
    pub fn observe_whole(&mut self, Estimate { keys, error_rate }: Estimate) -> Option<Crossing> {
        let capacity = self.sizing.capacity().get() as f64;
        let level = Level::DESCENDING
            .into_iter()
            .take_while(|&level| Some(level) > self.told)
            .find(|level| keys as f64 >= capacity * f64::from(level.percent()) / 100.0)?;
        self.told = Some(level);
        Some(Crossing { level, extent: Extent::Whole, keys, error_rate })
    }

    /// What has crossed the level, if anything.
    fn crossed(&self, level: Level, total: u64, keys: &[u64; SHARDS]) -> Option<Extent> {
        let due = self.sizing.capacity().get() as f64 * f64::from(level.percent()) / 100.0;
        if total as f64 >= due {
            return Some(Extent::Whole);
        }
        let in_shard = due / SHARDS as f64;
        let unlikely = in_shard + chance(in_shard);
        let (shard, &most) = ShardId::all().zip(keys).max_by_key(|&(_, keys)| keys)?;
        (most as f64 >= unlikely).then_some(Extent::Shard(shard))
    }
}

/// How far a count of mean `mean` exceeds it with a chance of at most 1e-12: the t of
/// t² = 2 ln(1e12) (mean + t/3).
fn chance(mean: f64) -> f64 {
    let x = 1e12_f64.ln();
    x / 3.0 + ((x / 3.0).powi(2) + 2.0 * x * mean).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::{Capacity, ErrorRate};
    use super::*;

    fn fullness(capacity: u64) -> Fullness {
        let sizing = Sizing::new(Capacity::new(capacity).unwrap(), ErrorRate::new(1e-4).unwrap());
        Fullness::new(sizing)
    }

    #[test]
    fn each_level_is_told_once_with_the_error_rate_of_the_moment() {
        let mut fullness = fullness(256_000);
        let mut told = Vec::new();
        for in_shard in 1..=2000 {
            told.extend(fullness.observe(&[in_shard; SHARDS]));
        }
        let at = |crossing: &Crossing| (crossing.level, crossing.extent, crossing.keys);
        assert_eq!(at(&told[0]), (Level::Nearly, Extent::Whole, 204_800));
        assert_eq!(at(&told[1]), (Level::Full, Extent::Whole, 256_000));
        assert_eq!(at(&told[2]), (Level::Over, Extent::Whole, 384_000));
        assert_eq!(told.len(), 3);
        assert!((0.7e-4..=1e-4).contains(&told[1].error_rate), "{:?}", told[1]);
        assert!(told[0].error_rate < 0.5 * told[1].error_rate);
        assert!(told[2].error_rate > 5.0 * told[1].error_rate);
    }

    #[test]
    fn a_leap_over_levels_tells_the_highest_only() {
        let mut fullness = fullness(256_000);
        assert_eq!(fullness.observe(&[5000; SHARDS]).unwrap().level, Level::Over);
        assert_eq!(fullness.observe(&[1000; SHARDS]), None);
    }

    #[test]
    fn a_shard_of_its_own_is_told() {
        let mut keys = [100; SHARDS];
        keys[0x3f] = 1200;
        let crossing = fullness(256_000).observe(&keys).unwrap();
        assert_eq!(crossing.level, Level::Nearly);
        let Extent::Shard(shard) = crossing.extent else { panic!("{crossing:?}") };
        assert_eq!(shard.to_string(), "3f");
    }

    /// Balls thrown evenly: whatever the capacity, no shard is told of before the whole is.
    #[test]
    fn chance_does_not_cry_wolf() {
        for capacity in [1, 10, 256, 2560, 25_600, 256_000] {
            for seed in 0..20u64 {
                let mut fullness = fullness(capacity);
                let mut keys = [0; SHARDS];
                for key in 0..capacity * 8 / 10 {
                    let hash = crate::hash::murmur3_x86_32(&(key + (seed << 32)).to_le_bytes(), 1);
                    keys[hash as usize % SHARDS] += 1;
                }
                let told = fullness.observe(&keys);
                let shard = told.is_some_and(|told| told.extent != Extent::Whole);
                assert!(!shard, "capacity {capacity}, seed {seed}: {told:?}");
            }
        }
    }
}
