//! What a run looks like from outside.

use std::time::Instant;

use serde::Serialize;

use super::{Parts, Tally};
use crate::pipeline::phase::Phase;
use urlseen_core::filter::Estimate;
use urlseen_core::storage::Head;
use urlseen_engine::engine::query::Asked;
use urlseen_engine::engine::store::Footprint;
use urlseen_engine::engine::{Fill, Gauges};

/// What a run looks like at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Report {
    /// What was done since the start.
    #[serde(flatten)]
    pub tally: Tally,
    /// What was asked since the start.
    pub(crate) asked: Asked,
    /// Fingerprints that are to pass once more.
    pub(crate) forgotten: usize,
    /// Seconds since the start.
    pub seconds: f64,
    /// Items that wait in the source, as last seen.
    pub(crate) source: u64,
    /// Items claimed and not committed.
    pub(crate) processing: u64,
    /// Fingerprints in the filter, estimated from its fill.
    pub keys: u64,
    /// Fingerprints that it is made for; more once it has grown.
    pub(crate) capacity: u64,
    /// The memory that it takes.
    pub(crate) bytes: u64,
    /// What the filter holds as a share of what it is made for.
    pub(crate) fill: f64,
    /// The share of unseen items that it calls seen now.
    pub(crate) error_rate: f64,
}

/// What a run looks like to those who ask while it goes on.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// What it is doing.
    pub(crate) phase: Phase,
    /// What it has done.
    pub(crate) report: Report,
    /// The last batch committed, once that is known.
    pub(crate) head: Option<Head>,
    /// When the lease counts as lost unless it is renewed, while it is held.
    pub(crate) lease_until: Option<Instant>,
    /// Items that wait in the sink, as last seen.
    pub(crate) sink: Option<u64>,
    /// Items on the rejects list, as last seen.
    pub(crate) rejected: Option<u64>,
    /// What is kept of the filter.
    pub(crate) kept: Option<Footprint>,
    /// How many items passed by each rule: see [`Pipeline::passed`](super::Pipeline::passed).
    pub(crate) passed: Vec<u64>,
}

/// How full the filter is.
pub(super) fn fill(parts: &Parts, gauges: &Gauges) -> Fill {
    let fill = Fill::of(&parts.design, gauges);
    match &parts.shared {
        Some(shared) => {
            let Estimate { keys, error_rate } = shared.estimate();
            Fill { keys, error_rate, bytes: shared.bytes(), ..fill }
        }
        None => fill,
    }
}

/// What it looks like now.
pub(super) fn report(
    fill: Fill,
    tally: Tally,
    (asked, forgotten): (Asked, usize),
    started: Instant,
    source: u64,
    processing: u64,
) -> Report {
    let Fill { keys, capacity, bytes, error_rate } = fill;
    Report {
        tally,
        asked,
        forgotten,
        seconds: started.elapsed().as_secs_f64(),
        source,
        processing,
        keys,
        capacity,
        bytes,
        fill: fill.share(),
        error_rate,
    }
}
