//! How full a filter is, of whatever layout.

use super::gauges::{Gauges, Whole};
use urlseen_core::filter::Parameters;

/// How full a filter is at some moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    /// Fingerprints in it; estimated from the bits that are set, where only those tell.
    pub keys: u64,
    /// Fingerprints that it is made for; more once it has grown.
    pub capacity: u64,
    /// The memory that it takes.
    pub bytes: u64,
    /// The share of unseen ones that it takes for seen now.
    pub error_rate: f64,
}

impl Fill {
    /// What an engine's gauges show of a filter that was made for `parameters`.
    pub fn of(parameters: &Parameters, gauges: &Gauges) -> Self {
        if let Some(sizing) = parameters.sizing() {
            let geometry = sizing.geometry();
            let ones = gauges.ones();
            return Self {
                keys: ones.iter().map(|&ones| geometry.keys_from_ones(ones)).sum(),
                capacity: sizing.capacity().get(),
                bytes: geometry.bytes(),
                error_rate: geometry.error_rate_of(&gauges.keys()),
            };
        }
        let capacity = parameters.capacity().unwrap_or(1);
        let empty = Self { keys: 0, capacity, bytes: 0, error_rate: 0.0 };
        let of = |Whole { keys, capacity, bytes, error_rate, .. }| Self {
            keys,
            capacity,
            bytes,
            error_rate,
        };
        gauges.whole().map_or(empty, of)
    }

    /// The same with the fingerprints that were new when they were set, instead of an estimate.
    pub fn counted(parameters: &Parameters, gauges: &Gauges) -> Self {
        Self { keys: gauges.keys().iter().sum(), ..Self::of(parameters, gauges) }
    }

    /// The share of what it is made for that it holds.
    pub fn share(&self) -> f64 {
        self.keys as f64 / self.capacity as f64
    }
}
