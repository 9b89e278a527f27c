//! Fill of the filter, which all threads can read while the owners work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use urlseen_core::filter::generation::Generations;
use urlseen_core::filter::{Fill, Gauge};

/// Gauges that the owners update after every commit. The counts lag by at most one batch.
#[derive(Debug)]
pub struct Gauges {
    owners: Vec<Arc<dyn Gauge>>,
    pub(super) tombstones: Arc<AtomicUsize>,
}

impl Gauges {
    /// Joins the gauges of all owners, and the count of tombstones.
    pub(super) fn new(owners: Vec<Arc<dyn Gauge>>, tombstones: Arc<AtomicUsize>) -> Self {
        Self { owners, tombstones }
    }

    /// Counts the fingerprints that were forgotten and have not passed again.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// Returns the fill of the whole filter.
    pub fn fill(&self) -> Fill {
        self.owners.iter().map(|owner| owner.fill()).sum()
    }

    /// Returns about the number of bytes of a snapshot of the filter.
    pub(super) fn saved_bytes(&self) -> u64 {
        self.owners.iter().map(|owner| owner.saved_bytes()).sum()
    }

    /// Returns the present error rate: the share of unseen fingerprints that the filter reports as
    /// seen. The call takes up to a millisecond.
    pub fn error_rate(&self) -> f64 {
        self.owners.iter().map(|owner| owner.error_rate()).sum()
    }

    /// Returns the part of [`Gauges::error_rate`] that a frozen filter causes.
    pub fn frozen_error_rate(&self) -> f64 {
        self.owners.iter().map(|owner| owner.frozen_error_rate()).sum()
    }

    /// Counts the fingerprints by generation. `None` if they do not expire.
    pub fn generations(&self) -> Option<Generations> {
        let owners = self.owners.iter().map(|owner| owner.generations());
        owners.reduce(|all, owner| Some(all?.with(&owner?))).flatten()
    }
}
