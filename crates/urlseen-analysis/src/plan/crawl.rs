//! Crawl that is planned: its flow of items, and the machines on which it runs.

use serde::Serialize;

use urlseen_core::filter::{Capacity, ErrorRate};
use urlseen_core::fingerprint::PartitionCount;

use super::amount::{Amount, Share};
use super::costs::{ItemCosts, TAB, URL};

/// Form of the items of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrafficItem {
    /// A URL: its fingerprint is computed.
    Url,
    /// A fingerprint, a tab and a payload.
    Tab,
}

impl TrafficItem {
    pub(super) fn costs(self) -> ItemCosts {
        match self {
            Self::Url => URL,
            Self::Tab => TAB,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Tab => "tab",
        }
    }
}

/// Flow of items in a crawl.
#[derive(Debug, Clone, Serialize)]
pub struct Traffic {
    /// Number of items per second.
    pub rate: Amount,
    /// Form of the discovered items.
    pub item: TrafficItem,
    /// Mean length of an item in bytes.
    pub item_bytes: Amount,
    /// Share of items that are unseen.
    pub unseen: Share,
    /// Share of items that producers push to a list for routers.
    pub routed: Share,
    /// Number of unseen items that wait in Redis for crawlers.
    pub waiting: Amount,
}

/// Resources of a machine. All machines of a crawl are equal.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Number of processor cores.
    pub cores: Amount,
    /// Amount of memory in GiB.
    pub memory_gib: Amount,
    /// Network in Gbit/s each way.
    pub network_gbit: Amount,
}

/// Crawl whose machines and programs are to be computed.
#[derive(Debug, Clone)]
pub struct PlannedCrawl {
    /// Number of URLs of the whole crawl.
    pub capacity: Capacity,
    /// Error rate of the filters at their capacity.
    pub error_rate: ErrorRate,
    /// Flow of items in the whole crawl.
    pub traffic: Traffic,
    /// Machines that run the crawl.
    pub machine: Machine,
    /// Number of partitions. `None` to choose the smallest number that suffices.
    pub partitions: Option<PartitionCount>,
}

/// Returns the given number of partitions, or all possible numbers in ascending order.
pub(super) fn counts(given: Option<PartitionCount>) -> impl Iterator<Item = PartitionCount> {
    let all = (0..=8).filter_map(|bits| PartitionCount::new(1 << bits));
    all.filter(move |&count| given.is_none_or(|given| given == count))
}
