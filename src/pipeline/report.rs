//! Progress of a run, for those who run it and for those who ask.

use std::time::Instant;

use serde::Serialize;

use super::Parts;
use super::counts::Counts;
use super::status::{FilterStatus, Status};
use urlseen_core::filter::{Estimate, Fill};
use urlseen_engine::engine::Gauges;
use urlseen_engine::engine::query::Asked;

/// What a run looks like at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Report {
    /// Counts since the start.
    #[serde(flatten)]
    pub counts: Counts,
    /// What was asked since the start.
    pub(crate) asked: Asked,
    /// Seconds since the start.
    pub seconds: f64,
    /// Items that wait in the source, as last seen.
    pub(crate) source: u64,
    /// Items claimed and not committed.
    pub(crate) processing: u64,
    /// The filter.
    #[serde(flatten)]
    pub(crate) filter: FilterStatus,
}

/// What a run looks like to those who ask while it goes on.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// All but for how long the lease is held.
    pub(crate) status: Status,
    /// When the lease counts as lost unless it is renewed, while it is held.
    pub(crate) lease_until: Option<Instant>,
}

impl Live {
    pub(super) fn new(status: Status, report: Report) -> Self {
        let mut live = Self { status, lease_until: None };
        live.update(report);
        live
    }

    /// Takes over a report.
    pub(super) fn update(&mut self, report: Report) {
        let Report { counts, asked, source, processing, filter, seconds: _ } = report;
        let status = &mut self.status;
        (status.counts, status.asked, status.filter) = (counts, asked, Some(filter));
        if status.head.is_some() {
            (status.lists.source, status.lists.processing) = (Some(source), Some(processing));
        }
    }
}

/// How full the filter is, and its error rate.
pub(super) fn fill(parts: &Parts, gauges: &Gauges) -> (Fill, f64) {
    let Some(shared) = &parts.shared else { return (gauges.fill(), gauges.error_rate()) };
    let Estimate { keys, error_rate } = shared.estimate();
    let capacity = parts.parameters.capacity().unwrap_or(1);
    (Fill { keys, counted: keys, capacity, bytes: shared.bytes(), layers: 0 }, error_rate)
}

/// What it looks like now.
pub(super) fn report(
    (fill, error_rate): (Fill, f64),
    counts: Counts,
    (asked, forgotten): (Asked, usize),
    started: Instant,
    source: u64,
    processing: u64,
) -> Report {
    let Fill { keys, capacity, bytes, .. } = fill;
    let (fill, forgotten) = (fill.share(), forgotten as u64);
    let filter = FilterStatus { keys, capacity, fill, error_rate, bytes, forgotten };
    let seconds = started.elapsed().as_secs_f64();
    Report { counts, asked, seconds, source, processing, filter }
}
