//! Speed at which the filter fills, and the time until it is full.

use std::time::{Duration, Instant};

/// Age of the newer point at which it takes the place of the older one. So a speed is the mean of
/// the last ten to twenty minutes.
const WINDOW: Duration = Duration::from_mins(10);

/// Minimum time for which a speed is computed. The start of a crawl says little about the rest.
const LEAST: Duration = Duration::from_mins(10);

/// Numbers of fingerprints at two earlier times, from which the speed of the filter is computed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Growth {
    /// The older point and the newer point. `None` while the filter does not work.
    points: Option<[(Instant, u64); 2]>,
}

impl Growth {
    /// Notes the present number of fingerprints. If it is lower than at the older point, the points
    /// no longer tell the speed, and are forgotten.
    pub(super) fn note(&mut self, keys: u64, now: Instant) {
        let point = (now, keys);
        self.points = Some(match self.points {
            Some([older, newer]) if older.1 <= keys => {
                let is_old = now.saturating_duration_since(newer.0) >= WINDOW;
                if is_old { [newer, point] } else { [older, newer] }
            }
            Some(_) | None => [point; 2],
        });
    }

    /// Returns the seconds until the filter holds `limit` fingerprints at its present speed, if it
    /// holds `keys` now. `None` if it holds more, does not grow, or has not worked for long enough.
    pub(crate) fn seconds_until(&self, limit: u64, keys: u64, now: Instant) -> Option<f64> {
        let [(begin, before), _] = self.points?;
        let time = now.saturating_duration_since(begin);
        let (missing, grown) = (limit.checked_sub(keys)?, keys.checked_sub(before)?);
        (missing > 0 && grown > 0 && time >= LEAST)
            .then(|| missing as f64 / grown as f64 * time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn the_time_until_the_limit_follows_the_speed_of_the_last_minutes() {
        let (begin, mut growth) = (Instant::now(), Growth::default());
        assert_eq!(growth.seconds_until(1000, 0, begin), None);
        // 10 fingerprints a minute for 100 minutes, then 2 a minute.
        let keys = |minute: u64| if minute < 100 { 10 * minute } else { 800 + 2 * minute };
        let mut until = |minute: u64| {
            let now = begin + u32::try_from(minute).unwrap() * MINUTE;
            growth.note(keys(minute), now);
            growth.seconds_until(2000, keys(minute), now)
        };
        assert_eq!((0..10).filter_map(&mut until).count(), 0, "it is too early");
        assert_eq!(until(10), Some(60.0 * 190.0));
        let slow = (11..=300).map(&mut until).last().unwrap().unwrap();
        assert!((slow / 60.0 - 300.0).abs() < 1e-9, "{slow}");
    }

    #[test]
    fn a_filter_that_rests_is_emptied_or_full_has_no_time() {
        let (begin, mut growth) = (Instant::now(), Growth::default());
        growth.note(0, begin);
        let later = |minutes: u32| begin + minutes * MINUTE;
        growth.note(500, later(20));
        assert_eq!(growth.seconds_until(1000, 500, later(20)), Some(60.0 * 20.0));
        // Without news, the mean speed falls.
        assert_eq!(growth.seconds_until(1000, 500, later(100)), Some(60.0 * 100.0));
        for (limit, keys) in [(500, 500), (400, 500), (1000, 0)] {
            assert_eq!(growth.seconds_until(limit, keys, later(20)), None, "{limit} {keys}");
        }
        let mut growth = Growth::default();
        growth.note(300, begin);
        growth.note(10, later(20));
        assert_eq!(growth.seconds_until(1000, 10, later(40)), None, "emptied");
        growth.note(20, later(40));
        assert_eq!(growth.seconds_until(1000, 20, later(40)), Some(60.0 * 1960.0));
    }
}
