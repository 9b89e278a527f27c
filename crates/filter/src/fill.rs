//! Warnings about the fill of a filter. Each warning is given once.

use super::number::whole;

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

/// Observer of a filter's fill. It gives each warning once. A mark is a percentage of the capacity,
/// such as 80 or 100.
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

    /// Returns a warning if a filter with this number of keys has crossed a new mark: the fill
    /// level, and its effect on the error rate. `error_rate` returns the current error rate.
    pub fn observe(&mut self, keys: u64, error_rate: impl FnOnce() -> f64) -> Option<String> {
        let share = 100.0 * keys as f64 / self.capacity as f64;
        let crossed = marks().take_while(|&mark| share >= mark as f64).last();
        self.told = crossed.filter(|&mark| mark > self.told)?;
        let (percent, error_rate) = (whole(share), error_rate());
        Some(format!(
            "the filter has {keys} fingerprints, {percent} % of what it is made for: the filter \
             now reports a share of {error_rate:.1e} of the unseen fingerprints as seen"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_causes_one_warning_with_the_present_error_rate() {
        let mut fill = FillWatch::new(256_000);
        let told: Vec<_> = (0..2_300_000).filter_map(|keys| fill.observe(keys, || 0.5)).collect();
        let crossed = [
            (80, 204_800),
            (100, 256_000),
            (150, 384_000),
            (200, 512_000),
            (400, 1_024_000),
            (800, 2_048_000),
        ];
        let warning = |(percent, keys)| {
            format!(
                "the filter has {keys} fingerprints, {percent} % of what it is made for: the \
                 filter now reports a share of 5.0e-1 of the unseen fingerprints as seen"
            )
        };
        assert_eq!(told, crossed.map(warning));
    }

    #[test]
    fn several_marks_crossed_at_once_cause_one_warning() {
        let mut one = FillWatch::new(256_000);
        let text = one.observe(1_448_960, || 0.5).unwrap();
        assert!(text.contains("1448960 fingerprints, 566 % of what it is made for"), "{text}");
        assert_eq!(one.observe(2_047_999, || 0.5), None);
        let text = one.observe(u64::MAX, || 0.5).unwrap();
        assert!(text.contains("18446744073709551615 fingerprints"), "{text}");
    }
}
