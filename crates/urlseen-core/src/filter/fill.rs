//! Warnings, once each, of a filter as full as it was made for, or fuller.

use super::{Estimate, SHARDS, ShardId};

/// Percent of capacity at which a warning is due: 80 (time to plan), 100 (the error rate is the one
/// asked for, and grows from here), 150, and from 200 on each doubling.
fn marks() -> impl Iterator<Item = u64> {
    let doublings = std::iter::successors(Some(200_u64), |mark| mark.checked_mul(2));
    [80, 100, 150].into_iter().chain(doublings)
}

/// Remedy for a full filter of a crawl, in its storage folder.
pub const REMEDY_IN_FOLDER: &str = "It cannot be made larger. Raise filter.capacity (or set \
     filter.kind = \"redisbloom\", which grows) and empty it with urlseen storage reset: all that \
     was seen is emitted again, except what urlseen import brings back from lists of fingerprints";

/// Remedy for a full filter in Redis.
pub const REMEDY_IN_REDIS: &str = "It cannot be made larger. Raise filter.capacity and empty it \
     with urlseen storage reset: all that was seen is emitted again";

/// Extent that has crossed a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillExtent {
    /// The filter as a whole.
    Whole,
    /// One shard, while the others are less full: leading bytes are not evenly spread.
    Shard(ShardId),
}

/// A mark newly crossed, with what a warning says about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// Extent that has crossed the mark.
    pub(crate) extent: FillExtent,
    /// Percent of what that is made for, as it is now.
    pub(crate) percent: u64,
    /// Keys in the whole filter.
    pub(crate) keys: u64,
    /// The filter's error rate as it is now.
    pub(crate) error_rate: f64,
}

/// Warning text: fill level and its effect on the error rate.
impl std::fmt::Display for Crossing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { extent, percent, keys, error_rate } = self;
        match extent {
            FillExtent::Whole => write!(f, "the filter has {keys} fingerprints")?,
            FillExtent::Shard(shard) => write!(
                f,
                "shard {shard} of the filter is fuller than the others (leading bytes are not \
                 evenly spread)"
            )?,
        }
        write!(
            f,
            ", {percent} % of what it is made for: of unseen ones it now takes a share of \
             {error_rate:.1e} for seen"
        )
    }
}

/// Observer of the marks that a filter has crossed.
///
/// The whole filter crosses a mark with its number of keys. A shard crosses it with more keys than
/// that share of 1/256 of the capacity *and* than chance explains: with evenly spread keys, a shard
/// that is due m has m + t or more with a chance of at most exp(−t² / 2(m + t/3)) (Bernstein's
/// inequality; counts only grow, so looking often does not add to it). t is chosen for 1e-12 a
/// shard: a small filter's shards differ widely and that is no news, a large one's differ by
/// percents and ten percent is.
#[derive(Debug, Clone)]
pub struct FillWatch {
    capacity: u64,
    /// The highest mark that a warning told of; 0 before the first.
    told: u64,
}

impl FillWatch {
    /// Watches a filter of this capacity, from before its first mark.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, told: 0 }
    }

    /// The highest mark that these keys per shard (by [`ShardId::index`]) have crossed, if it is
    /// higher than any told before. The filter has that error rate then. Takes a microsecond.
    pub fn observe(
        &mut self,
        keys: &[u64; SHARDS],
        error_rate: impl FnOnce() -> f64,
    ) -> Option<Crossing> {
        let total = keys.iter().sum();
        let (shard, &most) = ShardId::all().zip(keys).max_by_key(|&(_, keys)| keys)?;
        let is_crossed = |mark| {
            let in_shard = self.due(mark) / SHARDS as f64;
            total as f64 >= self.due(mark) || most as f64 >= in_shard + chance(in_shard)
        };
        let mark = self.news(is_crossed)?;
        let (extent, of_capacity) = if total as f64 >= self.due(mark) {
            (FillExtent::Whole, total as f64)
        } else {
            (FillExtent::Shard(shard), most as f64 * SHARDS as f64)
        };
        self.told = mark;
        let (percent, error_rate) = (self.percent(of_capacity), error_rate());
        Some(Crossing { extent, percent, keys: total, error_rate })
    }

    /// The same where only the whole is known.
    pub fn observe_whole(&mut self, Estimate { keys, error_rate }: Estimate) -> Option<Crossing> {
        self.told = self.news(|mark| keys as f64 >= self.due(mark))?;
        let percent = self.percent(keys as f64);
        Some(Crossing { extent: FillExtent::Whole, percent, keys, error_rate })
    }

    /// The highest mark that is crossed, if it is news.
    fn news(&self, is_crossed: impl Fn(u64) -> bool) -> Option<u64> {
        marks().take_while(|&mark| is_crossed(mark)).last().filter(|&mark| mark > self.told)
    }

    /// Keys of the whole at a mark.
    fn due(&self, mark: u64) -> f64 {
        self.capacity as f64 * mark as f64 / 100.0
    }

    /// Percent of capacity, rounded down.
    fn percent(&self, keys: f64) -> u64 {
        // Not negative; more than fits is as much as fits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let percent = (100.0 * keys / self.capacity as f64) as u64;
        percent
    }
}

/// Deviation that a count of mean `mean` exceeds with a chance of at most 1e-12: the t of t² = 2
/// ln(1e12) (mean + t/3).
fn chance(mean: f64) -> f64 {
    let x = 1e12_f64.ln();
    x / 3.0 + ((x / 3.0).powi(2) + 2.0 * x * mean).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(fill: &mut FillWatch, keys: &[u64; SHARDS]) -> Option<Crossing> {
        fill.observe(keys, || 0.5)
    }

    #[test]
    fn each_mark_is_told_once_with_the_error_rate_of_the_moment() {
        let mut fill = FillWatch::new(256_000);
        let mut told = Vec::new();
        for in_shard in 1..=9000 {
            told.extend(observe(&mut fill, &[in_shard; SHARDS]));
        }
        let at = |crossing: &Crossing| (crossing.percent, crossing.keys);
        assert_eq!(
            told.iter().map(at).collect::<Vec<_>>(),
            [
                (80, 204_800),
                (100, 256_000),
                (150, 384_000),
                (200, 512_000),
                (400, 1_024_000),
                (800, 2_048_000)
            ]
        );
        assert!(told.iter().all(|crossing| crossing.extent == FillExtent::Whole));
        assert!(told.iter().all(|crossing| crossing.to_string().contains("a share of 5.0e-1")));
    }

    #[test]
    fn a_leap_over_marks_is_told_once_with_the_real_fill() {
        let mut one = FillWatch::new(256_000);
        let crossing = observe(&mut one, &[5660; SHARDS]).unwrap();
        assert_eq!((crossing.percent, crossing.keys), (566, 1_448_960));
        let text = crossing.to_string();
        assert!(text.contains("1448960 fingerprints, 566 % of what it is made for"), "{text}");
        assert_eq!(observe(&mut one, &[7990; SHARDS]), None);
        assert_eq!(observe(&mut one, &[8000; SHARDS]).unwrap().percent, 800);
        let mut one = FillWatch::new(256_000);
        let estimate = |keys| Estimate { keys, error_rate: 0.5 };
        assert_eq!(one.observe_whole(estimate(1_449_000)).unwrap().percent, 566);
        assert_eq!(one.observe_whole(estimate(2_047_999)), None);
        assert_eq!(one.observe_whole(estimate(u64::MAX)).unwrap().keys, u64::MAX);
    }

    #[test]
    fn a_shard_of_its_own_is_told_with_its_own_fill() {
        let mut keys = [100; SHARDS];
        keys[0x3f] = 1210;
        let mut fill = FillWatch::new(256_000);
        let crossing = observe(&mut fill, &keys).unwrap();
        let FillExtent::Shard(shard) = crossing.extent else { panic!("{crossing:?}") };
        assert_eq!((shard.to_string().as_str(), crossing.percent), ("3f", 121));
        keys[0x3f] = 5000;
        assert_eq!(observe(&mut fill, &keys).unwrap().percent, 500);
    }

    /// Balls thrown evenly: whatever the capacity, no shard is told of before the whole is.
    #[test]
    fn chance_does_not_cry_wolf() {
        for capacity in [1, 10, 256, 2560, 25_600, 256_000] {
            for seed in 0..20u64 {
                let mut fill = FillWatch::new(capacity);
                let mut keys = [0; SHARDS];
                for key in 0..capacity * 8 / 10 {
                    let hash =
                        crate::filter::hash::murmur3_x86_32(&(key + (seed << 32)).to_le_bytes(), 1);
                    keys[hash as usize % SHARDS] += 1;
                }
                let told = observe(&mut fill, &keys);
                let shard = told.is_some_and(|told| told.extent != FillExtent::Whole);
                assert!(!shard, "capacity {capacity}, seed {seed}: {told:?}");
            }
        }
    }
}
