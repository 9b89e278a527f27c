//! Partition table: the record of a crawl with several partitions.

use crate::fingerprint::PartitionCount;
use crate::redis::hash_tag::partition_tag;

use super::record::PROTOCOL;

/// Partition table. It is at the key of the crawl record of a crawl with one partition, and leads
/// producers and consumers to the partitions. docs/reference/held.md describes its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionTable {
    /// Version of the daemon.
    pub urlseen: String,
    /// Number of partitions of the crawl.
    pub partitions: PartitionCount,
    /// Kind of the partitions' filters.
    pub kind: String,
    /// Algorithm of the fingerprints.
    pub algorithm: String,
    /// Fingerprint of [`PROBE`](super::PROBE).
    pub probe: String,
}

impl PartitionTable {
    /// Names of the fields on which all processes of a crawl must agree.
    pub const SHARED: [&'static str; 4] = ["partitions", "tags", "kind", "algorithm"];

    /// Returns the names and values of all fields.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let tags: Vec<_> = self.partitions.partitions().map(partition_tag).collect();
        vec![
            ("protocol", PROTOCOL.to_owned()),
            ("urlseen", self.urlseen.clone()),
            ("partitions", self.partitions.to_string()),
            ("tags", tags.join(",")),
            ("kind", self.kind.clone()),
            ("algorithm", self.algorithm.clone()),
            ("probe", self.probe.clone()),
        ]
    }
}
