//! Warnings about the fill of a filter. Each warning is given once.

use super::number::whole;
use super::{Estimate, SHARDS, ShardId};

/// Returns the percentages of the capacity at which a warning is given: 80 (time to plan), 100,
/// 150, 200 and each doubling of 200. Above 100, the error rate is higher than the requested rate.
fn marks() -> impl Iterator<Item = u64> {
    let doublings = std::iter::successors(Some(200_u64), |mark| mark.checked_mul(2));
    [80, 100, 150].into_iter().chain(doublings)
}

/// Remedy for a full filter of a crawl, in its storage folder.
pub const REMEDY_IN_FOLDER: &str = "Raise filter.capacity, or set filter.kind = \"two-choice\" \
     with a filter.grow_to that suffices, and empty it with urlseen storage reset: all that was \
     seen is emitted again, except what urlseen import brings back from lists of fingerprints";

/// Remedy for a full filter in Redis.
pub const REMEDY_IN_REDIS: &str = "It cannot be made larger. Raise filter.capacity and empty it \
     with urlseen storage reset: all that was seen is emitted again";

/// Mark that a filter has just crossed, and the numbers for the warning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// The fullest shard, if it has crossed the mark and the filter as a whole has not. In that
    /// case, the leading bytes of the fingerprints are not evenly spread. `None` if the filter as a
    /// whole has crossed the mark.
    pub(crate) shard: Option<ShardId>,
    /// Current number of keys in the filter or the shard, in percent of its capacity.
    pub(crate) percent: u64,
    /// Number of keys in the whole filter.
    pub(crate) keys: u64,
    /// Current error rate of the filter.
    pub(crate) error_rate: f64,
}

/// Warning text: fill level and its effect on the error rate.
impl std::fmt::Display for Crossing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shard, percent, keys, error_rate } = self;
        match shard {
            None => write!(f, "the filter has {keys} fingerprints")?,
            Some(shard) => write!(
                f,
                "shard {shard} of the filter is fuller than the other shards (leading bytes are \
                 not evenly spread)"
            )?,
        }
        write!(
            f,
            ", {percent} % of what it is made for: the filter now reports a share of \
             {error_rate:.1e} of the unseen fingerprints as seen"
        )
    }
}

/// Observer of a filter's fill. It gives each warning once. A mark is a percentage of the capacity,
/// such as 80 or 100.
///
/// The whole filter crosses a mark if its total number of keys is that percentage of the capacity
/// or more. The capacity of a shard is 1/256 of the total. A shard crosses a mark if it has more
/// keys than that percentage of its own capacity, and also more than chance explains. Suppose
/// that keys are evenly spread, and that the mean of a shard is m keys. By Bernstein's inequality,
/// a shard then has m + t keys or more with a chance of at most exp(−t² / 2(m + t/3)). Counts only
/// grow, so frequent observations do not increase the chance. The chosen t makes the chance 1e-12
/// for each shard. In a small filter, large differences between the shards are normal. In a large
/// filter, ten percent more than the mean is worth a warning.
#[derive(Debug, Clone)]
pub struct FillWatch {
    capacity: u64,
    /// Highest mark of a warning so far; 0 before the first warning.
    told: u64,
}

impl FillWatch {
    /// Creates the observer of a filter of this capacity that has crossed no mark.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, told: 0 }
    }

    /// Returns the highest mark that the filter has crossed, if that mark is new. `keys` is the
    /// number of keys of each shard, by [`ShardId::index`]. `error_rate` returns the current error
    /// rate. Takes a microsecond.
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
        let (shard, of_capacity) = if total as f64 >= self.due(mark) {
            (None, total as f64)
        } else {
            (Some(shard), most as f64 * SHARDS as f64)
        };
        self.told = mark;
        let (percent, error_rate) = (self.percent(of_capacity), error_rate());
        Some(Crossing { shard, percent, keys: total, error_rate })
    }

    /// Returns the highest mark that the filter has crossed, if that mark is new. This method is
    /// for filters without a count for each shard.
    pub fn observe_whole(&mut self, Estimate { keys, error_rate }: Estimate) -> Option<Crossing> {
        self.told = self.news(|mark| keys as f64 >= self.due(mark))?;
        let percent = self.percent(keys as f64);
        Some(Crossing { shard: None, percent, keys, error_rate })
    }

    /// Returns the highest crossed mark, if it is higher than all marks before.
    fn news(&self, is_crossed: impl Fn(u64) -> bool) -> Option<u64> {
        marks().take_while(|&mark| is_crossed(mark)).last().filter(|&mark| mark > self.told)
    }

    /// Returns the number of keys of the whole filter at a mark.
    fn due(&self, mark: u64) -> f64 {
        self.capacity as f64 * mark as f64 / 100.0
    }

    /// Returns a number of keys in percent of the capacity, rounded down.
    fn percent(&self, keys: f64) -> u64 {
        whole(100.0 * keys / self.capacity as f64)
    }
}

/// Returns t such that a count exceeds its mean by t or more with a chance of at most 1e-12. The t
/// solves t² = 2 ln(1e12) (mean + t/3).
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
    fn each_mark_causes_one_warning_with_the_present_error_rate() {
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
        assert!(told.iter().all(|crossing| crossing.shard.is_none()));
        assert!(told.iter().all(|crossing| crossing.to_string().contains("a share of 5.0e-1")));
    }

    #[test]
    fn several_marks_crossed_at_once_cause_one_warning() {
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
    fn a_shard_fuller_than_the_others_causes_a_warning_with_its_own_fill() {
        let mut keys = [100; SHARDS];
        keys[0x3f] = 1210;
        let mut fill = FillWatch::new(256_000);
        let crossing = observe(&mut fill, &keys).unwrap();
        let Some(shard) = crossing.shard else { panic!("{crossing:?}") };
        assert_eq!((shard.to_string().as_str(), crossing.percent), ("3f", 121));
        keys[0x3f] = 5000;
        assert_eq!(observe(&mut fill, &keys).unwrap().percent, 500);
    }

    /// Observes evenly spread keys, for several capacities. No shard causes a warning before the
    /// whole filter does.
    #[test]
    fn evenly_spread_keys_cause_no_warning_about_a_single_shard() {
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
                let shard = told.is_some_and(|told| told.shard.is_some());
                assert!(!shard, "capacity {capacity}, seed {seed}: {told:?}");
            }
        }
    }
}
