//! Needs of a crawl: its machines and programs, their load, and the resource that runs out first.

#[cfg(test)]
#[path = "needs_tests.rs"]
mod tests;

use serde::Serialize;

use urlseen_core::filter::SpecError;

use super::carried::Carried;
use super::costs::{HORIZON_BYTES, LOG_BYTES, SNAPSHOT_BYTES, SNAPSHOT_SHARE, SNAPSHOTS};
use super::crawl::{Machine, PlannedCrawl, Traffic, counts};
use super::layout::Layout;
use super::resource::Resource;
use super::workload::Workload;

/// Machines and programs that a crawl needs, with the load of the busiest of each kind.
#[derive(Debug, Serialize)]
pub struct Needs {
    pub(super) traffic: Traffic,
    pub(super) machine: Machine,
    #[serde(flatten)]
    pub(super) layout: Layout,
    /// True if the layout can do all the work.
    pub(super) suffices: bool,
    /// Smallest number of partitions that suffices. `None` if 256 partitions do not suffice.
    pub(super) partitions_that_suffice: Option<u64>,
    pub(super) resources: Vec<Resource>,
    /// Bytes of all storage folders.
    pub(super) folder_bytes: f64,
    /// Bytes per second that are written to the folders, for the log and the snapshots.
    pub(super) written_bytes_per_second: f64,
    /// Time in seconds until the filters are full.
    pub(super) full_after_seconds: f64,
    /// Largest crawls on 1, 4, 16 and 64 machines.
    pub(super) carried: Vec<Carried>,
}

impl Needs {
    /// Computes the machines and programs that the crawl needs.
    ///
    /// # Errors
    /// A filter of urlseen's own kind cannot have this capacity and error rate.
    pub fn of(crawl: &PlannedCrawl) -> Result<Self, SpecError> {
        let smallest = first_that_suffices(crawl)?;
        let partitions_that_suffice = smallest.as_ref().map(|(work, _)| work.partitions);
        let (work, layout) = match (crawl.partitions, smallest) {
            (None, Some(found)) => found,
            (given, _) => {
                let most = counts(given).last().expect("at least one number of partitions");
                let work = Workload::of(crawl, most, crawl.traffic.rate.get())?;
                let layout = best(&work);
                (work, layout)
            }
        };
        let traffic = crawl.traffic.clone();
        let part = work.filters / work.partitions as f64;
        let snapshot_after = (part * SNAPSHOT_SHARE).max(SNAPSHOT_BYTES);
        let kept = (SNAPSHOTS * (part + snapshot_after)).min(HORIZON_BYTES.max(part));
        let unseen = traffic.rate.get() * traffic.unseen.get();
        Ok(Self {
            // While a snapshot is written, the folder also holds the unfinished file, and the log
            // that made the snapshot due.
            folder_bytes: work.partitions as f64 * (kept + snapshot_after + part),
            written_bytes_per_second: unseen * LOG_BYTES * (1.0 + part / snapshot_after),
            full_after_seconds: crawl.capacity.get() as f64 / unseen,
            carried: Carried::all(crawl)?,
            suffices: work.fits(&layout),
            partitions_that_suffice,
            resources: work.resources(&layout),
            layout,
            machine: crawl.machine.clone(),
            traffic,
        })
    }
}

/// Returns the work and the layout with the smallest number of partitions that suffices.
fn first_that_suffices(crawl: &PlannedCrawl) -> Result<Option<(Workload, Layout)>, SpecError> {
    for count in counts(None) {
        let work = Workload::of(crawl, count, crawl.traffic.rate.get())?;
        let layout = best(&work);
        if work.fits(&layout) {
            return Ok(Some((work, layout)));
        }
    }
    Ok(None)
}

/// Returns the layout with the fewest machines that suffice. If none suffices, returns the one with
/// the most machines.
fn best(work: &Workload) -> Layout {
    let layouts = || (1..=work.partitions).filter_map(|machines| work.layout(machines));
    let found = layouts().find(|layout| work.fits(layout)).or_else(|| layouts().next_back());
    found.expect("one machine can have all partitions")
}
