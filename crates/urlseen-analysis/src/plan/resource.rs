//! Resources that a program or a machine has in a limited amount.

use serde::Serialize;

/// Program or machine that has a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Owner {
    /// Redis server that takes writes.
    Primary,
    /// Process of `urlseen run`.
    Process,
    /// Process of `urlseen route`.
    Router,
    Machine,
}

/// Unit in which a resource is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Bytes,
    BytesPerSecond,
    /// Number of threads that are always busy.
    Threads,
}

/// Quantity that grows until a resource is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Growth {
    Urls,
    ItemsPerSecond,
}

/// Resource of the busiest program or machine of its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Resource {
    pub(super) owner: Owner,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Amount that the crawl needs of this owner.
    pub(super) needed: f64,
    /// Amount that the owner has.
    pub(super) has: f64,
    /// Needed amount divided by the amount that the owner has.
    pub(super) share: f64,
    /// Quantity, such as items per second, whose growth uses up the resource.
    pub(super) grows_with: Growth,
    /// Value of this quantity at which the resource is used up, with the same layout.
    pub(super) full_at: f64,
    /// True if this resource runs out before all others.
    pub(super) first: bool,
}

/// Marks the resource that runs out first.
pub(super) fn mark_first(resources: &mut [Resource]) {
    let last = resources.iter_mut().max_by(|one, other| one.share.total_cmp(&other.share));
    if let Some(last) = last {
        last.first = true;
    }
}
