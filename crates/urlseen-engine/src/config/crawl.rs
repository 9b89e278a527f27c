//! Crawl of a configuration: its calls to Redis, the crawl record, which the daemon publishes for
//! producers and consumers, and the partition table, which all processes of a crawl with several
//! partitions check and publish.

use urlseen_core::fingerprint::{Fingerprinter, Request};
use urlseen_core::redis::protocol::{
    HeldCalls, HeldRecord, PROBE, PartitionTable, Protocol, Sink, Source,
};

use super::{Config, End, FilterPlace};

impl Config {
    /// Builds the calls of the crawl, for a filter in the daemon's memory.
    pub fn protocol(&self) -> Protocol {
        let held = HeldCalls::new(self.crawl_record());
        let (is_cluster, replicas) = (self.redis.url.is_cluster(), self.redis.wait_replicas);
        Protocol::new(self.keys(), self.list(), self.open_sink(), held, is_cluster, replicas)
    }

    /// Returns the source as a list of Redis.
    pub fn list(&self) -> Source {
        Source::new(self.source.take_from)
    }

    /// Returns the configured sink.
    pub fn open_sink(&self) -> Sink {
        Sink::new(self.sink.kind, self.sink.push_to)
    }

    /// Builds the crawl record.
    pub fn crawl_record(&self) -> HeldRecord {
        let (keys, Self { sink, fingerprint, held, filter, .. }) = (self.keys(), self);
        // Consumers pop the oldest item first.
        let pop = match sink.push_to {
            End::Right => "LEFT",
            End::Left => "RIGHT",
        };
        let forget = match filter.place {
            FilterPlace::Local => keys.forget,
            FilterPlace::Redis => String::new(),
        };
        HeldRecord {
            urlseen: env!("CARGO_PKG_VERSION").to_owned(),
            source: keys.source,
            push: self.list().push().to_owned(),
            processing: keys.processing,
            sink: keys.sink,
            sink_kind: sink.kind.name().to_owned(),
            pop: pop.to_owned(),
            emit: sink.emit.name().to_owned(),
            algorithm: fingerprint.algorithm.to_string(),
            drop_tracking: fingerprint.drop_tracking.to_string(),
            same: self.same.to_string(),
            probe: self.probe(),
            rejects: keys.rejected,
            forget,
            deliveries: held.deliveries,
            timeout: held.timeout,
            partitions: self.partition.count(),
        }
    }

    /// Builds the partition table. The configuration must be that of the whole crawl.
    pub fn partition_table(&self) -> PartitionTable {
        PartitionTable {
            urlseen: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: self.partitions.count,
            kind: self.filter.kind.to_string(),
            item: self.source.item,
            fingerprint: self.fingerprint_spec(),
            probe: self.probe(),
        }
    }

    /// Returns the configured fingerprint of [`PROBE`].
    fn probe(&self) -> String {
        let probe = Fingerprinter::new(self.fingerprint_spec()).fingerprint(&Request::get(PROBE));
        probe.expect("the URL is absolute").to_string()
    }
}
