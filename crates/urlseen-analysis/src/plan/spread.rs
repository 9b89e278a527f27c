//! Spread of the partitions over the primaries of a Redis Cluster.

use urlseen_core::fingerprint::PartitionCount;
use urlseen_core::redis::hash_tag::{SLOTS, partition_slot};

/// Slots of the partitions of a crawl, in ascending order.
#[derive(Debug)]
pub(super) struct Spread {
    slots: Vec<u64>,
}

impl Spread {
    pub(super) fn of(count: PartitionCount) -> Self {
        let mut slots: Vec<_> = count.partitions().map(partition_slot).map(u64::from).collect();
        slots.sort_unstable();
        Self { slots }
    }

    /// Returns the number of partitions of the primary that has the most of them. The primaries
    /// have equal shares of the slots, as after `redis-cli --cluster create`.
    pub(super) fn busiest(&self, primaries: u64) -> u64 {
        let first = |primary: u64| (2 * primary * u64::from(SLOTS) + primaries) / (2 * primaries);
        let before = |slot| self.slots.partition_point(|&it| it < slot) as u64;
        let counts = (0..primaries).map(|it| before(first(it + 1)) - before(first(it)));
        counts.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the tests are those of a cluster that `redis-cli --cluster create` made, by
    /// `CLUSTER SLOTS` and `CLUSTER KEYSLOT`.
    #[test]
    fn the_busiest_primary_may_have_a_partition_more_than_its_share() {
        let busiest = |partitions, primaries| {
            Spread::of(PartitionCount::new(partitions).unwrap()).busiest(primaries)
        };
        assert_eq!([1, 3, 4, 6, 16].map(|it| busiest(16, it)), [16, 6, 4, 3, 1]);
        // A third of 16 partitions is 5.3, and a ninth is 1.8.
        assert_eq!((busiest(16, 9), busiest(64, 33)), (3, 3));
        assert_eq!((busiest(1, 1), busiest(256, 256)), (1, 1));
    }
}
