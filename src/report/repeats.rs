//! Schedule of warnings that repeat.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Shortest time between two equal warnings in the first hour, and after it. A warning that was
/// silent for [`LONG`] begins anew.
const SHORT: Duration = Duration::from_mins(1);
const LONG: Duration = Duration::from_hours(1);

/// Maximum number of different warnings that are remembered.
const MOST: usize = 100;

/// Occurrences of a warning. The first one is shown, then one a minute, and after an hour one an
/// hour.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Times of the first occurrence, and of the last one that was shown, and of the last one.
    times: Option<[Instant; 3]>,
    /// Number of occurrences since the last one that was shown.
    silent: u64,
}

impl Repeats {
    /// Counts one occurrence. If it is to be shown, returns the number of earlier ones that were
    /// not.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<u64> {
        let known = self.times.filter(|&[_, _, last]| now.duration_since(last) < LONG);
        let [first, shown, _] = known.unwrap_or([now; 3]);
        let pause = if now.duration_since(first) < LONG { SHORT } else { LONG };
        if known.is_some() && now.duration_since(shown) < pause {
            self.times = Some([first, shown, now]);
            self.silent += 1;
            return None;
        }
        self.times = Some([first, now, now]);
        Some(std::mem::take(&mut self.silent))
    }
}

/// Occurrences of different warnings.
#[derive(Debug, Default)]
pub(crate) struct AllRepeats(HashMap<String, Repeats>);

impl AllRepeats {
    /// Counts one occurrence of a warning: see [`Repeats::turn`].
    pub(crate) fn turn(&mut self, warning: &str, now: Instant) -> Option<u64> {
        if self.0.len() >= MOST && !self.0.contains_key(warning) {
            let oldest = self.0.iter().min_by_key(|(_, repeats)| repeats.times.map(|it| it[2]));
            let oldest = oldest.map(|(warning, _)| warning.clone());
            self.0.remove(&oldest.unwrap_or_default());
        }
        self.0.entry(warning.to_owned()).or_default().turn(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_shown_once_then_each_minute_then_each_hour_with_its_count() {
        let (mut all, begin) = (AllRepeats::default(), Instant::now());
        let mut turn = |second| all.turn("a", begin + Duration::from_secs(second));
        let shown: Vec<_> = (0..4 * 3600).filter_map(|it| Some((it, turn(it)?))).collect();
        let expected = (1..60).map(|minute| (60 * minute, 59)).chain([
            (3540 + 3600, 3599),
            (3540 + 7200, 3599),
            (3540 + 10_800, 3599),
        ]);
        assert_eq!(shown, std::iter::once((0, 0)).chain(expected).collect::<Vec<_>>());
        // After an hour of silence, the warning begins anew.
        assert_eq!([20_000, 20_060].map(turn), [Some(59), Some(0)]);
    }

    #[test]
    fn different_warnings_are_shown_and_few_are_remembered() {
        let (mut all, now) = (AllRepeats::default(), Instant::now());
        for number in 0..10 * MOST {
            assert_eq!(all.turn(&number.to_string(), now), Some(0));
        }
        assert_eq!(all.0.len(), MOST);
    }
}
