//! Values that follow a filter through a run: the speed at which it fills, the URLs that it has
//! lost, and the memory that its growth leaves.

use std::time::{Duration, Instant};

use indicatif::BinaryBytes;
use urlseen_filter::Parameters;
use urlseen_filter::memory::{Available, SPARE};

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
    pub(crate) fn note(&mut self, keys: u64, now: Instant) {
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

/// Largest change of the number of keys that is followed by a trapezoid, as a part of all keys. A
/// larger change repeats the whole integral, which takes milliseconds.
const PART: u64 = 64;

/// Expected number of lost URLs: unseen fingerprints that the filter of a run reported as seen.
#[derive(Debug)]
pub(crate) struct LostUrls {
    parameters: Parameters,
    last: Option<Point>,
}

/// State of the filter for which the number was last computed.
#[derive(Debug, Clone, Copy)]
struct Point {
    keys: u64,
    error_rate: f64,
    urls: f64,
}

impl LostUrls {
    /// Observes a filter with these parameters.
    pub(crate) fn new(parameters: Parameters) -> Self {
        Self { parameters, last: None }
    }

    /// Returns the number for a filter that has this many keys, and this error rate now. `None` if
    /// the parameters do not tell it, because the filter is imported.
    pub(crate) fn at(&mut self, keys: u64, error_rate: f64) -> Option<f64> {
        let expires = self.parameters.expire_after().is_some();
        let is_near = |last: &Point| expires || keys.abs_diff(last.keys) <= last.keys / PART;
        let urls = match self.last.filter(is_near) {
            Some(last) => {
                let least = if expires { 0.0 } else { f64::NEG_INFINITY };
                // URLs that were lost remain lost when other fingerprints expire.
                let more = (keys as f64 - last.keys as f64).max(least);
                (last.urls + more * f64::midpoint(last.error_rate, error_rate)).max(0.0)
            }
            None => self.parameters.lost_urls(keys).ok()?,
        };
        self.last = Some(Point { keys, error_rate, urls });
        Some(urls)
    }
}

/// Growth of a filter, in bytes, after which the available memory is read again.
const MEMORY_STEP: u64 = 2 << 20;

/// Minimum growth for which there should be memory. It is several steps, so that a small filter
/// also warns before its growth fails.
const MEMORY_LEAST: u64 = 8 * MEMORY_STEP;

/// Observer of a filter that takes memory while it grows. It warns once.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    /// Size of the filter at which the available memory is read again.
    next: u64,
    is_told: bool,
}

impl MemoryWatch {
    /// Creates the observer of a filter that takes `bytes` bytes at the start.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { next: bytes + MEMORY_STEP, is_told: false }
    }

    /// Returns a warning if less memory is available than the filter takes for its next growth, a
    /// quarter of its size. The memory that a growing filter leaves free is not available to it.
    pub(crate) fn observe(
        &mut self,
        bytes: u64,
        available: impl FnOnce() -> Option<Available>,
    ) -> Option<String> {
        if bytes < self.next || self.is_told {
            return None;
        }
        self.next = bytes + MEMORY_STEP;
        let Available { bytes: left, limit } = available()?;
        self.is_told = left < SPARE + (bytes / 4).max(MEMORY_LEAST);
        self.is_told.then(|| {
            let [bytes, left, spare] = [bytes, left, SPARE].map(BinaryBytes);
            format!(
                "the filter takes {bytes} and still grows, and {left} are available {limit}. The \
                 daemon ends when less than {spare} are left, and loses nothing. Give it more \
                 memory before that"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use urlseen_filter::Sizing;
    use urlseen_filter::memory::Limit;

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

    fn native(capacity: u64) -> Parameters {
        let (capacity, error_rate) = (capacity.to_string(), "1e-3");
        let sizing = Sizing::new(capacity.parse().unwrap(), error_rate.parse().unwrap());
        Parameters::native(&sizing, None)
    }

    fn error_rate(parameters: &Parameters, keys: u64) -> f64 {
        parameters.outlook(keys).unwrap().error_rate
    }

    #[test]
    fn small_steps_add_up_to_the_whole_integral() {
        let parameters = native(1_000_000);
        let mut lost = LostUrls::new(parameters.clone());
        let all = (0..=300).map(|step| {
            let keys = step * 4000;
            let urls = lost.at(keys, error_rate(&parameters, keys)).unwrap();
            let whole = parameters.lost_urls(keys).unwrap();
            assert!((urls - whole).abs() <= 0.02 * whole, "{keys}: {urls}, not {whole}");
            urls
        });
        assert!(all.collect::<Vec<_>>().is_sorted());
    }

    /// A small step uses the error rate that it is given, and not the parameters.
    #[test]
    fn only_a_large_step_repeats_the_integral() {
        let parameters = native(1_000_000);
        let mut lost = LostUrls::new(parameters.clone());
        let mut assert_is = |keys, want: f64| {
            let urls = lost.at(keys, 0.5).unwrap();
            assert!((urls - want).abs() < 1e-9, "{keys}: {urls}, not {want}");
        };
        let whole = |keys| parameters.lost_urls(keys).unwrap();
        assert_is(640_000, whole(640_000));
        assert_is(650_000, whole(640_000) + 5000.0);
        assert_is(640_000, whole(640_000));
        assert_is(900_000, whole(900_000));
        assert_is(0, 0.0);
    }

    #[test]
    fn an_imported_filter_tells_nothing() {
        assert_eq!(LostUrls::new(Parameters::imported()).at(1000, 0.1), None);
    }

    #[test]
    fn the_end_of_the_memory_is_told_once_and_in_time() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut observe = |bytes: u64, left: u64| {
            watch.observe(bytes << 20, || {
                Some(Available { bytes: left << 20, limit: Limit::Machine })
            })
        };
        assert_eq!(observe(100, 1), None, "the filter has not grown");
        assert_eq!(observe(200, 64 + 50), None);
        assert_eq!(observe(201, 1), None, "the memory was read a short time ago");
        let warning = observe(220, 64 + 54).unwrap();
        let expected = "the filter takes 220.00 MiB and still grows, and 118.00 MiB are available \
                        on this machine. The daemon ends when less than 64.00 MiB are left";
        assert!(warning.starts_with(expected), "{warning}");
        assert_eq!(observe(300, 1), None);
    }

    #[test]
    fn a_small_filter_warns_before_its_growth_fails() {
        let mut watch = MemoryWatch::new(1 << 20);
        let steps = (5..64).step_by(4);
        let told = steps.map(|bytes: u64| {
            let available = Available { bytes: (100 - bytes) << 20, limit: Limit::Machine };
            (bytes, watch.observe(bytes << 20, || Some(available)).is_some())
        });
        // The growth would fail at 36 MiB.
        assert_eq!(told.filter(|told| told.1).map(|told| told.0).collect::<Vec<_>>(), [21]);
    }
}
