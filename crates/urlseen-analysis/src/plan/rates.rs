//! Error rates at shares of capacity.

use serde::Serialize;

/// Where error rates are shown, in percent of capacity.
pub(super) const PERCENT: [u64; 4] = [50, 100, 150, 200];

/// Error rates below this are all the same to a reader.
const NEGLIGIBLE: f64 = 1e-99;

/// The error rate at some number of keys.
#[derive(Debug, Serialize)]
pub(super) struct RateRow {
    pub(super) percent: u64,
    pub(super) keys: u64,
    pub(super) error_rate: f64,
}

/// Error rates at each of [`PERCENT`].
pub(super) fn rates(capacity: u64, error_rate: impl Fn(u64) -> f64) -> Vec<RateRow> {
    PERCENT.map(|percent| rate_at(capacity, percent, &error_rate)).into()
}

/// The error rate at some percent of a capacity.
pub(super) fn rate_at(capacity: u64, percent: u64, error_rate: impl Fn(u64) -> f64) -> RateRow {
    let keys = (capacity * percent).div_ceil(100);
    RateRow { percent, keys, error_rate: error_rate(keys) }
}

/// An error rate as text.
pub(super) fn shown(rate: f64) -> String {
    if rate == 0.0 {
        "0".to_owned()
    } else if rate < NEGLIGIBLE {
        format!("<{NEGLIGIBLE:.0e}")
    } else {
        format!("{rate:.2e}")
    }
}
