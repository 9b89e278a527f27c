//! Needs of a crawl: the resources of the daemon and of Redis, and the resource that runs out
//! first.

use serde::Serialize;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::number::whole;
use urlseen_core::filter::{Capacity, ErrorRate, SpecError};

use super::amount::{Amount, Share};
use super::costs::{
    DAEMON_BYTES, HORIZON_BYTES, ItemCosts, LOG_BYTES, POP_NS, PUSH_NS, SNAPSHOT_BYTES,
    SNAPSHOT_SHARE, SNAPSHOTS, TAB, URL, WAITING_BYTES, WIRE_BYTES,
};
use super::parameters;

/// Number of nanoseconds in a second.
const SECOND: f64 = 1e9;

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
    fn costs(self) -> ItemCosts {
        match self {
            Self::Url => URL,
            Self::Tab => TAB,
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
    /// Number of unseen items that wait in Redis for crawlers.
    pub waiting: Amount,
}

/// Resources of a machine. The daemon and Redis each have their own machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Number of processor cores.
    pub cores: Amount,
    /// Amount of memory in GiB.
    pub memory_gib: Amount,
    /// Network in Gbit/s each way.
    pub network_gbit: Amount,
}

/// Program that needs a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Daemon,
    Redis,
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
    ItemsWaiting,
}

/// Resource of which a machine has a limited amount.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Resource {
    pub(super) side: Side,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Amount that the whole crawl needs.
    pub(super) asked: f64,
    /// Amount that one machine has.
    pub(super) has: f64,
    /// Needed amount divided by the amount of one machine.
    pub(super) share: f64,
    /// Quantity, such as items per second, whose growth uses up the resource.
    pub(super) grows_with: Growth,
    /// Value of this quantity at which the resource of one machine is used up.
    pub(super) full_at: f64,
    /// True if this resource runs out before all others.
    pub(super) first: bool,
}

/// All resources that the crawl needs.
#[derive(Debug, Serialize)]
pub struct Needs {
    pub(super) traffic: Traffic,
    pub(super) machine: Machine,
    pub(super) resources: Vec<Resource>,
    /// Bytes of all storage folders.
    pub(super) folder_bytes: f64,
    /// Bytes per second that are written to the folders, for the log and the snapshots.
    pub(super) written_bytes_per_second: f64,
    /// Time in seconds until the filter is full.
    pub(super) full_after_seconds: f64,
    /// Number of daemons, each with a machine and a source of its own.
    pub(super) daemons: u64,
    pub(super) redis_servers: u64,
}

impl Needs {
    /// Computes the resources that the crawl needs if each of its machines is like `machine`. The
    /// filter is of urlseen's own kind.
    ///
    /// # Errors
    /// A filter of urlseen's own kind cannot have this capacity and error rate.
    pub fn of(
        capacity: Capacity,
        error_rate: ErrorRate,
        traffic: Traffic,
        machine: Machine,
    ) -> Result<Self, SpecError> {
        let filter = parameters(NATIVE, capacity.get(), error_rate.get(), None)?;
        let filter = filter.outlook(capacity.get())?.bytes[1] as f64;
        let resources = resources(capacity.get() as f64, filter, &traffic, &machine);
        let machines = |side| {
            let shares = resources.iter().filter(|each| each.side == side);
            shares.map(|each| whole(each.share.ceil())).fold(1, u64::max)
        };
        let redis_servers = machines(Side::Redis);
        // A daemon reads one source, which is on one server. So each server needs at least one
        // daemon.
        let daemons = machines(Side::Daemon).max(redis_servers);
        let part = filter / daemons as f64;
        let snapshot_after = (part * SNAPSHOT_SHARE).max(SNAPSHOT_BYTES);
        let kept = (SNAPSHOTS * (part + snapshot_after)).min(HORIZON_BYTES.max(part));
        let unseen = traffic.rate.get() * traffic.unseen.get();
        Ok(Self {
            // While a snapshot is written, the folder also holds the unfinished file, and the log
            // that made the snapshot due.
            folder_bytes: daemons as f64 * (kept + snapshot_after + part),
            written_bytes_per_second: unseen * LOG_BYTES * (1.0 + part / snapshot_after),
            full_after_seconds: capacity.get() as f64 / unseen,
            daemons,
            redis_servers,
            traffic,
            machine,
            resources,
        })
    }
}

/// Returns all resources, and marks the resource that runs out first.
fn resources(urls: f64, filter: f64, traffic: &Traffic, machine: &Machine) -> Vec<Resource> {
    let (rate, unseen) = (traffic.rate.get(), traffic.unseen.get());
    let (costs, waiting) = (traffic.item.costs(), traffic.waiting.get());
    let memory = machine.memory_gib.get() * f64::from(1 << 30);
    let network = machine.network_gbit.get() * 1e9 / 8.0;
    let sent = rate * (traffic.item_bytes.get() + WIRE_BYTES);
    let busy = |nanoseconds: f64| rate * nanoseconds / SECOND;
    let redis = costs.redis.at(unseen) + PUSH_NS + unseen * POP_NS;
    let queued = waiting * (traffic.item_bytes.get() + WAITING_BYTES);
    // One core is for the thread that talks to Redis; all other cores run filter threads.
    let filter_threads = (machine.cores.get() - 1.0).max(1.0);

    let by_rate = |side, name, unit, asked, has| {
        Resource::new(side, name, unit, asked, has, (Growth::ItemsPerSecond, rate))
    };
    let flow = |side, name, asked| by_rate(side, name, Unit::BytesPerSecond, asked, network);
    let threads = |side, name, cost, has| by_rate(side, name, Unit::Threads, busy(cost), has);
    let held =
        |side, asked, grows| Resource::new(side, "memory", Unit::Bytes, asked, memory, grows);
    let mut all = vec![
        held(Side::Daemon, filter + DAEMON_BYTES, (Growth::Urls, urls)),
        threads(Side::Daemon, "filter threads", costs.filter.at(unseen), filter_threads),
        threads(Side::Daemon, "connection thread", costs.link.at(unseen), 1.0),
        flow(Side::Daemon, "network in", sent),
        flow(Side::Daemon, "network out", sent * unseen),
        held(Side::Redis, queued, (Growth::ItemsWaiting, waiting)),
        threads(Side::Redis, "its thread", redis, 1.0),
        // Redis receives all items from the crawlers, and receives the unseen ones again from the
        // daemon. Redis sends all items to the daemon, and sends the unseen ones to the crawlers.
        flow(Side::Redis, "network in", sent * (1.0 + unseen)),
        flow(Side::Redis, "network out", sent * (1.0 + unseen)),
    ];
    let first = (0..all.len()).max_by(|&one, &other| all[one].share.total_cmp(&all[other].share));
    if let Some(first) = first {
        all[first].first = true;
    }
    all
}

impl Resource {
    fn new(
        side: Side,
        name: &'static str,
        unit: Unit,
        asked: f64,
        has: f64,
        (grows_with, now): (Growth, f64),
    ) -> Self {
        let share = asked / has;
        Self { side, name, unit, asked, has, share, grows_with, full_at: now / share, first: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_added_until_every_resource_suffices() {
        let amount = |text: &str| text.parse::<Amount>().unwrap();
        let needs = |rate: &str, item, unseen: &str, memory: &str| {
            let traffic = Traffic {
                rate: amount(rate),
                item,
                item_bytes: amount("100"),
                unseen: unseen.parse().unwrap(),
                waiting: amount("10M"),
            };
            let (cores, network_gbit) = (amount("32"), amount("10"));
            let machine = Machine { cores, memory_gib: amount(memory), network_gbit };
            let capacity = Capacity::new(10_000_000_000).unwrap();
            Needs::of(capacity, ErrorRate::new(1e-8).unwrap(), traffic, machine).unwrap()
        };
        // A filter for 10 billion keys at error rate 1e-8 takes 51 GiB.
        let small = needs("1k", TrafficItem::Url, "0.1", "16");
        assert_eq!((small.daemons, small.redis_servers), (4, 1));
        assert!(small.resources[0].first);
        let large = needs("1k", TrafficItem::Url, "0.1", "64");
        assert_eq!((large.daemons, large.redis_servers), (1, 1));
        // Each Redis server has its own source, and therefore its own daemon.
        let fast = needs("20M", TrafficItem::Tab, "0.1", "256");
        assert!(fast.redis_servers > 1 && fast.daemons >= fast.redis_servers);
        // Seen items are not pushed, popped or logged.
        let seen = needs("1M", TrafficItem::Url, "0", "256");
        assert!(seen.full_after_seconds.is_infinite() && seen.written_bytes_per_second == 0.0);
    }
}
