//! State of a router, for the router itself and for its watchers.

use std::time::SystemTime;

use serde::Serialize;

use crate::pipeline::phase::Phase;

/// State of a router, as its endpoint reports it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteStatus {
    /// Name of the crawl, `crawl.name`.
    pub crawl: String,
    /// The version of the program that runs.
    pub version: String,
    /// Process id of the router.
    pub pid: u32,
    /// Time at which the router started.
    #[serde(serialize_with = "crate::pipeline::moment::serialize")]
    pub since: SystemTime,
    /// Present phase of the router.
    pub phase: Phase,
    /// Key of the list that the router reads.
    pub source: String,
    /// Items that all partitions have acknowledged, and that have left the list.
    pub routed: u64,
    /// State of each partition, in order.
    pub partitions: Vec<PartitionStatus>,
}

/// State of a partition, as its router sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PartitionStatus {
    /// Number of the partition.
    pub partition: u16,
    /// Items that the partition has acknowledged.
    pub pushed: u64,
    /// Items that the partition has not acknowledged yet.
    pub waiting: u64,
    /// Last error of the connection to the partition; `None` while the connection works.
    pub trouble: Option<String>,
}
