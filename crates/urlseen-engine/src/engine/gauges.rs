//! Fill of the filter, which all threads can read while the judge works.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use urlseen_core::filter::generation::Generations;
use urlseen_core::filter::{Fill, Gauge};

/// Gauges that the judge updates after every commit. The counts lag by at most one batch.
#[derive(Debug)]
pub struct Gauges {
    filter: Arc<dyn Gauge>,
    tombstones: Arc<AtomicUsize>,
}

impl Gauges {
    /// Joins the gauge of the filter, and the count of tombstones.
    pub(super) fn new(filter: Arc<dyn Gauge>, tombstones: Arc<AtomicUsize>) -> Self {
        Self { filter, tombstones }
    }

    /// Counts the fingerprints that were forgotten and have not passed again.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// Returns the fill of the filter.
    pub fn fill(&self) -> Fill {
        self.filter.fill()
    }

    /// Returns about the number of bytes of a snapshot of the filter.
    pub(super) fn saved_bytes(&self) -> u64 {
        self.filter.saved_bytes()
    }

    /// Returns the present error rate: the share of unseen fingerprints that the filter reports as
    /// seen. The call takes up to a millisecond.
    pub fn error_rate(&self) -> f64 {
        self.filter.error_rate()
    }

    /// Returns the part of [`Gauges::error_rate`] that a frozen filter causes.
    pub fn frozen_error_rate(&self) -> f64 {
        self.filter.frozen_error_rate()
    }

    /// Counts the fingerprints by generation. `None` if they do not expire.
    pub fn generations(&self) -> Option<Generations> {
        self.filter.generations()
    }
}
