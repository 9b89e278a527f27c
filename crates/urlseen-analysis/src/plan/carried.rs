//! Largest flow of items and number of URLs that some numbers of machines carry.

use serde::Serialize;

use urlseen_core::filter::SpecError;

use super::crawl::{PlannedCrawl, counts};
use super::layout::Layout;
use super::resource::{Growth, Resource};
use super::workload::Workload;

/// Numbers of machines for which the load is computed.
const MACHINES: [u64; 4] = [1, 4, 16, 64];
/// Share of a flow by which another number of partitions must be better to be chosen.
const BETTER: f64 = 1e-6;

/// Crawl that uses up some number of machines.
#[derive(Debug, Serialize)]
pub(super) struct Carried {
    pub(super) layout: Layout,
    /// Largest number of items per second.
    pub(super) items_per_second: f64,
    /// Largest number of URLs that the memory permits with this layout.
    pub(super) urls: f64,
    /// Resource that limits the number of items per second.
    pub(super) first_limit: Resource,
}

impl Carried {
    /// Computes the largest crawls of all numbers of machines. A number of machines is left out if
    /// the crawl has fewer partitions.
    pub(super) fn all(crawl: &PlannedCrawl) -> Result<Vec<Self>, SpecError> {
        let mut best = MACHINES.map(|_| None::<Self>);
        let rate = crawl.traffic.rate.get();
        for count in counts(crawl.partitions) {
            let work = Workload::of(crawl, count, rate)?;
            for (machines, best) in MACHINES.into_iter().zip(&mut best) {
                let Some(largest) = work.largest(machines) else { continue };
                let most = limit(work.resources(&largest)).full_at;
                // Rounding must not make the flow larger than the limit.
                let work = Workload::of(crawl, count, most * (1.0 - BETTER))?;
                let Some(layout) = work.layout(machines) else { continue };
                let found = Self::of(&work, layout);
                let least = best.as_ref().map_or(0.0, |it| it.items_per_second * (1.0 + BETTER));
                if found.items_per_second > least {
                    *best = Some(found);
                }
            }
        }
        Ok(best.into_iter().flatten().collect())
    }

    fn of(work: &Workload, layout: Layout) -> Self {
        let resources = work.resources(&layout);
        let held = resources.iter().filter(|each| each.grows_with == Growth::Urls);
        let urls = held.map(|each| each.full_at).fold(f64::INFINITY, f64::min);
        let first_limit = limit(resources);
        Self { layout, items_per_second: first_limit.full_at, urls, first_limit }
    }
}

/// Returns the resource that limits the number of items per second.
fn limit(resources: Vec<Resource>) -> Resource {
    let by_rate = resources.into_iter().filter(|each| each.grows_with == Growth::ItemsPerSecond);
    let first = by_rate.min_by(|one, other| one.full_at.total_cmp(&other.full_at));
    Resource { first: true, ..first.expect("each layout has primaries") }
}
