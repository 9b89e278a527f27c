//! State of the filter, as the daemon's endpoint reports it.

use serde::{Deserialize, Serialize};
use urlseen_core::filter::generation::{Generations, LIVE};
use urlseen_core::filter::{Fill, Parameters};
use urlseen_engine::engine::Gauges;

/// State of the filter at some moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FilterStatus {
    /// Number of fingerprints in the filter.
    pub keys: u64,
    /// Number of fingerprints that the filter is made for.
    pub capacity: u64,
    /// Number of fingerprints up to which the filter keeps its error rate. `None` for a filter that
    /// takes more memory instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Number of keys divided by the capacity.
    pub fill: f64,
    /// Share of unseen items that the filter reports as seen, computed from its fill.
    pub error_rate: f64,
    /// Part of the error rate that a frozen filter causes, to which urlseen storage convert gave a
    /// new filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_error_rate: Option<f64>,
    /// Expected number of URLs that the filter has lost so far: unseen ones that it reported as
    /// seen. `None` if the parameters of the filter are not known, as for an imported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_urls: Option<f64>,
    /// Seconds until the filter holds `limit` fingerprints, if it grows as in the last one to two
    /// minutes. `None` if it does not grow, or holds more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_seconds: Option<f64>,
    /// Generations of the fingerprints, if they expire (`filter.expire_after`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generations: Option<GenerationsStatus>,
    /// Memory of the filter, in bytes.
    pub bytes: u64,
    /// Number of fingerprints that were forgotten and have not passed again.
    #[serde(default)]
    pub forgotten: u64,
}

/// Generations of the fingerprints of a filter. A generation lasts a fifth of
/// `filter.expire_after`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GenerationsStatus {
    /// Number of the present generation, counted from 1970.
    pub number: u32,
    /// Seconds until the next generation begins. `None` before the daemon has begun a generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_seconds: Option<f64>,
    /// Number of fingerprints by age in generations, those of the present generation first.
    pub keys: [u64; LIVE as usize],
    /// Number of expired fingerprints that still take memory.
    pub expired: u64,
    /// Number of expired fingerprints whose memory was freed since the filter was loaded.
    #[serde(default)]
    pub swept: u64,
}

impl GenerationsStatus {
    /// Adds the fingerprints of another partition.
    fn and(&self, other: &Self) -> Self {
        let keys = std::array::from_fn(|age| self.keys[age] + other.keys[age]);
        let number = self.number.max(other.number);
        let (expired, swept) = (self.expired + other.expired, self.swept + other.swept);
        Self { number, next_seconds: None, keys, expired, swept }
    }
}

impl From<Generations> for GenerationsStatus {
    fn from(generations: Generations) -> Self {
        let Generations { now, keys, expired, swept, .. } = generations;
        Self { number: now.get(), next_seconds: None, keys, expired, swept }
    }
}

impl FilterStatus {
    /// Returns the state of a filter with this fill and with `forgotten` tombstones.
    pub(super) fn new(fill: Fill, error_rate: f64, forgotten: usize, lost: &mut LostUrls) -> Self {
        let Fill { keys, capacity, bytes, .. } = fill;
        let (fill, forgotten) = (fill.share(), forgotten as u64);
        let lost_urls = lost.at(keys, error_rate);
        Self {
            keys,
            capacity,
            limit: None,
            fill,
            error_rate,
            frozen_error_rate: None,
            lost_urls,
            full_seconds: None,
            generations: None,
            bytes,
            forgotten,
        }
    }

    /// Returns the state of a filter in memory. The computation of the error rate takes up to a
    /// millisecond.
    pub(super) fn of_gauges(gauges: &Gauges, lost: &mut LostUrls) -> Self {
        let frozen_error_rate = Some(gauges.frozen_error_rate()).filter(|&rate| rate > 0.0);
        let (fill, error_rate) = (gauges.fill(), gauges.error_rate());
        let generations = gauges.generations().map(GenerationsStatus::from);
        let status = Self::new(fill, error_rate, gauges.tombstones(), lost);
        Self { frozen_error_rate, generations, ..status }
    }

    /// Sets the number of fingerprints up to which the filter keeps its error rate.
    pub(super) fn limited(self, limit: Option<u64>) -> Self {
        Self { limit, ..self }
    }

    /// Adds the state of the filter of another partition. The error rate is then the mean, weighted
    /// with the numbers of keys.
    pub(super) fn and(&self, other: &Self) -> Self {
        let (keys, capacity) = (self.keys + other.keys, self.capacity + other.capacity);
        let mean = |one: f64, its: f64| {
            (one * self.keys as f64 + its * other.keys as f64) / keys.max(1) as f64
        };
        let frozen = [self, other].map(|it| it.frozen_error_rate);
        Self {
            keys,
            capacity,
            limit: self.limit.zip(other.limit).map(|(one, other)| one + other),
            fill: keys as f64 / capacity.max(1) as f64,
            error_rate: mean(self.error_rate, other.error_rate),
            frozen_error_rate: frozen[0].or(frozen[1]).map(|_| {
                let [one, its] = frozen.map(Option::unwrap_or_default);
                mean(one, its)
            }),
            lost_urls: self.lost_urls.zip(other.lost_urls).map(|(one, other)| one + other),
            full_seconds: None,
            generations: match (self.generations, other.generations) {
                (Some(own), Some(its)) => Some(own.and(&its)),
                (own, its) => own.or(its),
            },
            bytes: self.bytes + other.bytes,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

/// Largest change of the number of keys that is followed by a trapezoid, as a part of all keys. A
/// larger change repeats the whole integral, which takes milliseconds.
const PART: u64 = 64;

/// Expected number of lost URLs: unseen fingerprints that the filter of a run reported as seen.
#[derive(Debug)]
pub(super) struct LostUrls {
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
    pub(super) fn new(parameters: Parameters) -> Self {
        Self { parameters, last: None }
    }

    /// Returns the number for a filter that has this many keys, and this error rate now. `None` if
    /// the parameters do not tell it, because the filter is imported.
    pub(super) fn at(&mut self, keys: u64, error_rate: f64) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_lose_the_sum_of_their_losses_if_all_are_known() {
        let status = |lost_urls| FilterStatus {
            keys: 10,
            capacity: 100,
            limit: Some(100),
            fill: 0.1,
            error_rate: 0.5,
            frozen_error_rate: None,
            lost_urls,
            full_seconds: None,
            generations: None,
            bytes: 64,
            forgotten: 0,
        };
        let lost = |one, other| status(one).and(&status(other)).lost_urls;
        assert_eq!(lost(Some(1.5), Some(2.0)), Some(3.5));
        assert_eq!(lost(Some(1.5), None), None);
    }

    use urlseen_core::filter::Sizing;

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
}
