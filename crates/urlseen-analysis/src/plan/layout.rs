//! Layout of a crawl: the numbers of its machines and programs.

use serde::Serialize;

/// Numbers of the machines and programs of a crawl. Each machine has the same number of programs of
/// each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Layout {
    pub(super) machines: u64,
    pub(super) partitions: u64,
    /// Number of Redis servers that take writes. If there are several, they are a Redis Cluster.
    pub(super) primaries: u64,
    /// Number of processes of `urlseen run`.
    pub(super) processes: u64,
    /// Number of processes of `urlseen route`. Each of them has a list.
    pub(super) routers: u64,
}

impl Layout {
    /// Returns a layout with one primary and one process on each machine. If that is no possible
    /// number of primaries, returns a layout with more primaries. Returns `None` if there are too
    /// few partitions for these primaries.
    pub(super) fn smallest(machines: u64, partitions: u64) -> Option<Self> {
        let primaries =
            (1..=partitions).map(|each| each * machines).find(|&it| it == 1 || it >= 3)?;
        let layout = Self { machines, partitions, primaries, processes: machines, routers: 0 };
        (primaries <= partitions).then_some(layout)
    }

    /// Returns a layout with more primaries. `None` if some of them would have no partition.
    pub(super) fn with_more_primaries(self) -> Option<Self> {
        let more = (self.primaries + self.machines).max(3);
        let primaries = more.next_multiple_of(self.machines);
        (primaries <= self.partitions).then_some(Self { primaries, ..self })
    }

    /// Returns a layout with as many routers, and so lists, as primaries. `None` if nothing is
    /// routed, or if there are that many routers already.
    pub(super) fn with_a_list_for_each_primary(self) -> Option<Self> {
        let may_have_more = (1..self.primaries).contains(&self.routers);
        may_have_more.then_some(Self { routers: self.primaries, ..self })
    }

    /// Returns a layout with one more process on each machine. `None` if one of them would have no
    /// partition.
    pub(super) fn with_more_processes(self) -> Option<Self> {
        let processes = self.processes + self.machines;
        (processes <= self.partitions).then_some(Self { processes, ..self })
    }

    /// Returns the largest number of partitions of a machine.
    pub(super) fn machine_partitions(&self) -> u64 {
        self.partitions.div_ceil(self.machines)
    }

    /// Returns the largest number of partitions of a process.
    pub(super) fn process_partitions(&self) -> u64 {
        self.machine_partitions().div_ceil(self.processes / self.machines)
    }

    /// Returns the largest share of the routed items that one primary has in lists of routers. The
    /// lists are spread evenly over the primaries.
    pub(super) fn lists_share(&self) -> f64 {
        share(self.routers.div_ceil(self.primaries), self.routers)
    }

    /// Returns the share of the routers, and of their lists, that a machine has.
    pub(super) fn routers_share(&self) -> f64 {
        share(self.routers / self.machines, self.routers)
    }
}

/// Returns the part as a share of the whole, at most 1. The share is 0 if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
