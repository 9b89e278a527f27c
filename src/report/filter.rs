//! State of the filter of a run, and the warnings while it fills.

use indicatif::{BinaryBytes, HumanCount};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};
use urlseen_engine::engine::Engine;
use urlseen_filter::{Fill, FillWatch, Parameters, REMEDY_IN_FOLDER, REMEDY_IN_REDIS, memory};
use urlseen_filter::{Generations, LIVE};

use super::trend::{LostUrls, MemoryWatch};

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
    /// Seconds until the filter holds `limit` fingerprints, if it grows as in the last ten to
    /// twenty minutes. `None` if it does not grow, or holds more.
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
    /// Adds the fingerprints of another filter.
    fn and(&self, other: &Self) -> Self {
        let keys = std::array::from_fn(|age| self.keys[age] + other.keys[age]);
        let number = self.number.max(other.number);
        let (expired, swept) = (self.expired + other.expired, self.swept + other.swept);
        Self { number, next_seconds: None, keys, expired, swept }
    }
}

impl FilterStatus {
    /// Adds the state of another filter. The error rate is then the mean, weighted with the numbers
    /// of keys.
    pub(crate) fn and(&self, other: &Self) -> Self {
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

/// Observer of the filter of a run. It describes the state of the filter, and warns while the
/// filter fills. Its methods take the engine with the filter, or with the cache of a filter in
/// Redis, whose fill and error rate are `in_redis`.
#[derive(Debug)]
pub(crate) struct FilterReport {
    /// Capacity of a filter of fixed size: more fingerprints raise its error rate. `None` for a
    /// filter that takes more memory instead.
    pub(crate) limit: Option<u64>,
    /// Observer that warns if a filter with a limit becomes full.
    watch: Option<FillWatch>,
    /// Number of layers of a filter that grows, as last reported.
    layers: usize,
    memory: MemoryWatch,
    lost: LostUrls,
}

impl FilterReport {
    /// Observes the filter of an engine, which has these parameters and this limit.
    pub(crate) fn new(engine: &Engine, parameters: Parameters, limit: Option<u64>) -> Self {
        let Fill { layers, bytes, .. } = engine.handle.gauge.fill();
        Self {
            limit,
            watch: limit.map(FillWatch::new),
            layers,
            memory: MemoryWatch::new(bytes),
            lost: LostUrls::new(parameters),
        }
    }

    /// Returns the state of the filter. For a filter in memory, the computation of the error rate
    /// takes up to a millisecond.
    pub(crate) fn status(
        &mut self,
        engine: &Engine,
        in_redis: Option<(Fill, f64)>,
    ) -> FilterStatus {
        let gauge = &engine.handle.gauge;
        let (fill, error_rate) = in_redis.unwrap_or_else(|| (gauge.fill(), gauge.error_rate()));
        let Fill { keys, capacity, bytes, .. } = fill;
        let status = FilterStatus {
            keys,
            capacity,
            limit: self.limit,
            fill: fill.share(),
            error_rate,
            lost_urls: self.lost.at(keys, error_rate),
            bytes,
            ..FilterStatus::default()
        };
        if in_redis.is_some() {
            return status;
        }
        FilterStatus {
            frozen_error_rate: Some(gauge.frozen_error_rate()).filter(|&rate| rate > 0.0),
            generations: gauge.generations().map(|it| {
                let Generations { now, keys, expired, swept, .. } = it;
                let number = now.get();
                GenerationsStatus { number, next_seconds: None, keys, expired, swept }
            }),
            forgotten: engine.tombstones() as u64,
            ..status
        }
    }

    /// Warns if the fill has crossed a threshold, and logs if the filter has grown.
    pub(crate) fn look(&mut self, engine: &Engine, in_redis: Option<(Fill, f64)>) {
        let gauge = &engine.handle.gauge;
        let fill = gauge.fill();
        let (counted, remedy) = match in_redis {
            Some((fill, _)) => (fill.counted, REMEDY_IN_REDIS),
            None => (fill.counted, REMEDY_IN_FOLDER),
        };
        let error_rate = || in_redis.map_or_else(|| gauge.error_rate(), |(_, rate)| rate);
        let watch = self.watch.as_mut();
        if let Some(crossing) = watch.and_then(|it| it.observe(counted, error_rate)) {
            warn!("{crossing}. {remedy}");
        }
        let Fill { layers, capacity, bytes, .. } = fill;
        if layers > std::mem::replace(&mut self.layers, layers) && layers > 1 {
            let (capacity, bytes) = (HumanCount(capacity), BinaryBytes(bytes));
            info!("the filter has grown: {layers} layers for {capacity} fingerprints, {bytes}");
        }
        if let Some(warning) = self.memory.observe(bytes, memory::available) {
            warn!("{warning}");
        }
    }

    /// Returns true if the filter holds at least as many keys as it is made for, and cannot grow.
    pub(crate) fn is_past_capacity(&self, engine: &Engine, in_redis: Option<(Fill, f64)>) -> bool {
        let fill = || in_redis.map_or_else(|| engine.handle.gauge.fill(), |(fill, _)| fill);
        self.limit.is_some_and(|limit| fill().counted >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_lose_the_sum_of_their_losses_if_all_are_known() {
        let status = |lost_urls| FilterStatus {
            keys: 10,
            error_rate: 0.5,
            lost_urls,
            ..FilterStatus::default()
        };
        let lost = |one, other| status(one).and(&status(other)).lost_urls;
        assert_eq!(lost(Some(1.5), Some(2.0)), Some(3.5));
        assert_eq!(lost(Some(1.5), None), None);
    }
}
