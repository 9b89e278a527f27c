//! Workload of a crawl with some partitions, and its division among programs and machines.

use urlseen_core::filter::SpecError;
use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::number::whole;
use urlseen_core::fingerprint::PartitionCount;

use super::costs::{DAEMON_BYTES, POP_NS, PUSH_NS, ROUTED_REDIS_NS, WAITING_BYTES, WIRE_BYTES};
use super::crawl::{Machine, PlannedCrawl};
use super::layout::{Layout, share};
use super::parameters;
use super::resource::{Growth, Owner, Resource, Unit, mark_first};
use super::spread::Spread;

/// Number of nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Work of a whole crawl. Threads are numbers of threads that are always busy.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) partitions: u64,
    spread: Spread,
    machine: Machine,
    urls: f64,
    rate: f64,
    unseen: f64,
    /// Share of items that routers move.
    routed: f64,
    /// Bytes per second of all items, as Redis's protocol sends them.
    sent: f64,
    filter_threads: f64,
    /// Threads that talk to Redis in all processes.
    links: f64,
    /// Threads of Redis for the keys of all partitions.
    redis: f64,
    /// Threads of Redis for the lists of the routers.
    lists: f64,
    router_threads: f64,
    /// Bytes of the filters of all partitions.
    pub(super) filters: f64,
    /// Bytes of the items that wait in Redis.
    queued: f64,
}

impl Workload {
    /// Computes the work of a crawl with `count` partitions and `rate` items a second. The filters
    /// are of urlseen's own kind.
    ///
    /// # Errors
    /// A filter of urlseen's own kind cannot have this capacity and error rate.
    pub(super) fn of(
        crawl: &PlannedCrawl,
        count: PartitionCount,
        rate: f64,
    ) -> Result<Self, SpecError> {
        let PlannedCrawl { capacity, error_rate, traffic, machine, .. } = crawl;
        let partitions = u64::from(count.get());
        let of_partition = capacity.get().div_ceil(partitions);
        let filter = parameters(NATIVE, of_partition, error_rate.get(), None)?;
        let filter = filter.outlook(of_partition)?.bytes[1] as f64;
        let unseen = traffic.unseen.get();
        // With one partition, producers push to its source, and there is nothing to route.
        let routed = if partitions == 1 { 0.0 } else { traffic.routed.get() };
        let costs = traffic.item.costs();
        let busy = |nanoseconds: f64| rate * nanoseconds / SECOND;
        Ok(Self {
            partitions,
            spread: Spread::of(count),
            machine: machine.clone(),
            urls: capacity.get() as f64,
            rate,
            unseen,
            routed,
            sent: rate * (traffic.item_bytes.get() + WIRE_BYTES),
            filter_threads: busy(costs.filter.at(unseen)),
            links: busy(costs.link.at(unseen)),
            redis: busy(costs.redis.at(unseen) + PUSH_NS + unseen * POP_NS),
            lists: busy(routed * ROUTED_REDIS_NS),
            router_threads: busy(routed * costs.router),
            filters: partitions as f64 * filter,
            queued: traffic.waiting.get() * (traffic.item_bytes.get() + WAITING_BYTES),
        })
    }

    /// Returns the layout with the fewest programs on this number of machines. A thread of a
    /// program may still have too much work if more programs would have no partition. Returns
    /// `None` if there are too few partitions for these machines.
    pub(super) fn layout(&self, machines: u64) -> Option<Layout> {
        let mut layout = Layout::smallest(machines, self.partitions)?;
        let routers = whole((self.router_threads / machines as f64).ceil());
        layout.routers = machines * routers;
        // The list of a router is on one primary. So each primary gets a list before more primaries
        // can divide the work.
        while self.primary_thread(&layout) > 1.0
            && let Some(more) =
                layout.with_a_list_for_each_primary().or_else(|| layout.with_more_primaries())
        {
            layout = more;
        }
        while self.process_thread(&layout) > 1.0
            && let Some(more) = layout.with_more_processes()
        {
            layout = more;
        }
        Some(layout)
    }

    /// Returns the layout with the most programs on this number of machines.
    pub(super) fn largest(&self, machines: u64) -> Option<Layout> {
        let mut layout = Layout::smallest(machines, self.partitions)?;
        while let Some(more) = layout.with_more_primaries() {
            layout = more;
        }
        while let Some(more) = layout.with_more_processes() {
            layout = more;
        }
        let routers = if self.routed > 0.0 { layout.primaries } else { 0 };
        Some(Layout { routers, ..layout })
    }

    /// Returns true if no program or machine has more work than it can do.
    pub(super) fn fits(&self, layout: &Layout) -> bool {
        self.resources(layout).iter().all(|each| each.share <= 1.0)
    }

    /// Returns the work of the busiest primary's thread.
    fn primary_thread(&self, layout: &Layout) -> f64 {
        self.redis * self.served_share(layout, 1) + self.lists * layout.lists_share()
    }

    /// Returns the work of the connection thread of the busiest process.
    fn process_thread(&self, layout: &Layout) -> f64 {
        self.links * share(layout.process_partitions(), self.partitions)
    }

    /// Returns the share of all partitions that `count` primaries have at most.
    fn served_share(&self, layout: &Layout, count: u64) -> f64 {
        share(count * self.spread.busiest(layout.primaries), self.partitions)
    }

    /// Returns all resources, and marks the one that runs out first.
    pub(super) fn resources(&self, layout: &Layout) -> Vec<Resource> {
        let thread = |owner, name, needed| self.by_rate(owner, name, Unit::Threads, needed, 1.0);
        let mut all = vec![
            thread(Owner::Primary, "its thread", self.primary_thread(layout)),
            thread(Owner::Process, "connection thread", self.process_thread(layout)),
        ];
        if layout.routers > 0 {
            let needed = self.router_threads * share(1, layout.routers);
            all.push(thread(Owner::Router, "its thread", needed));
        }
        all.extend([self.memory(layout), self.cores(layout)]);
        all.extend(self.network(layout));
        mark_first(&mut all);
        all
    }

    /// Returns the memory of the busiest machine.
    fn memory(&self, layout: &Layout) -> Resource {
        let has = self.machine.memory_gib.get() * f64::from(1 << 30);
        let partitions = layout.machine_partitions();
        let filters = self.filters * share(partitions, self.partitions);
        // Each partition and each router has buffers of its own.
        let buffers = (partitions + layout.routers / layout.machines) as f64 * DAEMON_BYTES;
        let served = self.served_share(layout, layout.primaries / layout.machines);
        let others = buffers + self.queued * served;
        Resource {
            grows_with: Growth::Urls,
            full_at: self.urls * (has - others).max(0.0) / filters,
            ..self.by_rate(Owner::Machine, "memory", Unit::Bytes, filters + others, has)
        }
    }

    /// Returns the cores of the busiest machine.
    fn cores(&self, layout: &Layout) -> Resource {
        let own = share(layout.machine_partitions(), self.partitions);
        let served = self.served_share(layout, layout.primaries / layout.machines);
        let needed = (self.filter_threads + self.links) * own
            + self.redis * served
            + (self.lists + self.router_threads) * layout.routers_share();
        self.by_rate(Owner::Machine, "cores", Unit::Threads, needed, self.machine.cores.get())
    }

    /// Returns the network of the busiest machine, in and out.
    fn network(&self, layout: &Layout) -> [Resource; 2] {
        let Self { unseen, routed, .. } = *self;
        let own = share(layout.machine_partitions(), self.partitions);
        let served = self.served_share(layout, layout.primaries / layout.machines);
        let moved = routed * layout.routers_share();
        // A program reaches a program on the same machine without the network. Producers and
        // consumers are on other machines.
        let crossing = 1.0 - 1.0 / layout.machines as f64;
        let into = (1.0 - routed) * served
            + moved
            // Pushes of routers and processes to Redis, and reads of processes and routers.
            + crossing * ((routed + unseen) * served + own + moved);
        let out = unseen * served
            // Replies of Redis, and pushes of processes and routers.
            + crossing * (served + moved + unseen * own + moved);
        let has = self.machine.network_gbit.get() * 1e9 / 8.0;
        [("network in", into), ("network out", out)].map(|(name, items)| {
            self.by_rate(Owner::Machine, name, Unit::BytesPerSecond, self.sent * items, has)
        })
    }

    fn by_rate(
        &self,
        owner: Owner,
        name: &'static str,
        unit: Unit,
        needed: f64,
        has: f64,
    ) -> Resource {
        let share = needed / has;
        let (grows_with, full_at) = (Growth::ItemsPerSecond, self.rate / share);
        Resource { owner, name, unit, needed, has, share, grows_with, full_at, first: false }
    }
}
