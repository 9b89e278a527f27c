//! Crawl of a configuration: its calls to Redis, the crawl record, which the daemon publishes for
//! producers and consumers, and the partition table, which all processes of a crawl with several
//! partitions check and publish.

use serde_json::Value as Json;
use urlseen_filter::choice::{End, FilterPlace};
use urlseen_filter::{FilterSpec, Parameters, SpecError};
use urlseen_fingerprint::{FingerprintSpec, Fingerprinter, Partition, Request};
use urlseen_redis::filter::opening::{RedisOpenError, Wanted};
use urlseen_redis::hash_tag::{partition_key, partition_tag};
use urlseen_redis::protocol::{
    HeldCalls, HeldRecord, Keys, PROBE, PartitionTable, Protocol, Sink, Source,
};

use super::keys::{Config, Fingerprint};

impl Config {
    /// Returns the names of the crawl's keys in Redis.
    pub fn keys(&self) -> Keys {
        let Self { source, sink, rejects, forget, .. } = self;
        Keys::new(&source.key, &sink.key, &rejects.key, &forget.key)
    }

    /// Returns the spec of the configured fingerprints.
    pub fn fingerprint_spec(&self) -> FingerprintSpec {
        let Fingerprint { algorithm, canonical, keep_fragments, drop_tracking } = self.fingerprint;
        let same = self.rules.same.clone();
        FingerprintSpec { algorithm, canonical, keep_fragments, drop_tracking, same }
    }

    /// Sets the spec of the fingerprints.
    pub(crate) fn computed_by(&mut self, spec: FingerprintSpec) {
        let FingerprintSpec { algorithm, canonical, keep_fragments, drop_tracking, same } = spec;
        self.fingerprint = Fingerprint { algorithm, canonical, keep_fragments, drop_tracking };
        self.rules.same = same;
    }

    /// Returns the spec of the configured filter.
    ///
    /// # Errors
    /// Returns an error if no such filter can exist.
    pub(crate) fn filter_spec(&self) -> Result<FilterSpec, SpecError> {
        FilterSpec::read(|name| self.part(name))
    }

    /// Returns one part of the filter's spec. `name` is its name, such as `filter.capacity`.
    pub(crate) fn part(&self, name: &str) -> Option<String> {
        match name {
            "fingerprint.same" => return Some(self.rules.same.to_string()),
            "partitions.count" => return Some(self.partition.count().to_string()),
            _ => {}
        }
        let (_, value) = self.values().into_iter().find(|(key, _)| *key == name)?;
        match value {
            Json::String(text) => Some(text).filter(|it| !["", "random"].contains(&&**it)),
            value => Some(value.to_string()),
        }
    }

    /// Returns the configured filter in Redis.
    ///
    /// # Errors
    /// Returns an error if no such filter can exist.
    pub(crate) fn redis_filter(&self) -> Result<Wanted, RedisOpenError> {
        Wanted::new(&self.filter.key, self.filter_spec()?)
    }

    /// Returns the number of fingerprints that a filter with these parameters is made for. With
    /// more fingerprints, its error rate is too high, or it takes more than `filter.max_memory`.
    /// Returns `None` if it may take as much memory as there is.
    pub(crate) fn limit(&self, parameters: &Parameters) -> Option<u64> {
        // If other settings than the capacity determine the size, the limit is the configured
        // capacity.
        let capacity = || parameters.capacity().unwrap_or(self.filter.capacity);
        let by_rate = parameters.field("filter.grow_to");
        let by_rate = by_rate.or_else(|| (!parameters.grows()).then(capacity));
        let max_memory = Some(self.filter.max_memory).filter(|&it| it > 0 && parameters.grows());
        by_rate.into_iter().chain(max_memory.map(|it| parameters.keys_within(it))).min()
    }

    /// Returns the name of the crawl, with the number of the partition if there are others.
    pub(crate) fn crawl_name(&self) -> String {
        if self.partition.has_others() {
            format!("{}, partition {}", self.crawl.name, self.partition)
        } else {
            self.crawl.name.clone()
        }
    }

    /// Returns the number of the partition.
    pub(crate) fn number(&self) -> u16 {
        self.partition.number()
    }

    /// Returns the configuration of each crawl: of each partition in order, or of the whole crawl.
    pub(crate) fn crawls(&self) -> impl ExactSizeIterator<Item = Self> {
        self.partitions.count.partitions().map(|partition| self.of_partition(partition))
    }

    /// Returns the configuration of a partition. It is that of a crawl with its own keys, its own
    /// folder, and an equal part of the capacity and the memory. A crawl with one partition keeps
    /// its names.
    #[must_use]
    pub(crate) fn of_partition(&self, partition: Partition) -> Self {
        let mut config = self.clone();
        if !partition.has_others() {
            return config;
        }
        let tag = partition_tag(partition);
        let Self { source, sink, rejects, forget, filter, storage, .. } = &mut config;
        let keys = [&mut source.key, &mut sink.key, &mut rejects.key, &mut forget.key];
        for key in keys.into_iter().chain([&mut filter.key]) {
            *key = partition_key(key, &tag);
        }
        storage.dir.push(partition.number().to_string());
        for size in [&mut filter.capacity, &mut filter.grow_to, &mut filter.max_memory] {
            *size = size.div_ceil(partition.count().get().into());
        }
        config.partition = partition;
        config.find_node();
        config
    }

    /// Sets the key that finds the node of a cluster.
    pub(crate) fn find_node(&mut self) {
        // While a slot is being moved, Redis names the new node only in reply to a command about a
        // missing key. No program has a key of this name.
        let key = format!("{}:missing", self.keys().state);
        self.redis.url = self.redis.url.for_key(&key);
    }

    /// Builds the calls of the crawl, for a filter in the daemon's memory.
    pub(crate) fn protocol(&self) -> Protocol {
        let held = HeldCalls::new(self.crawl_record());
        let (is_cluster, replicas) = (self.redis.url.is_cluster(), self.redis.wait_replicas);
        Protocol::new(self.keys(), self.list(), self.open_sink(), held, is_cluster, replicas)
    }

    /// Returns the source as a list of Redis.
    pub fn list(&self) -> Source {
        Source { take_from: self.source.take_from }
    }

    /// Returns the configured sink.
    pub(crate) fn open_sink(&self) -> Sink {
        Sink { kind: self.sink.kind, push_to: self.sink.push_to }
    }

    /// Builds the crawl record.
    pub(crate) fn crawl_record(&self) -> HeldRecord {
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
            keep_fragments: fingerprint.keep_fragments,
            canonical: fingerprint.canonical.to_string(),
            drop_tracking: fingerprint.drop_tracking.to_string(),
            same: self.rules.same.to_string(),
            probe: self.probe(),
            rejects: keys.rejected,
            forget,
            deliveries: held.deliveries,
            timeout: held.timeout,
            partitions: self.partition.count(),
        }
    }

    /// Builds the partition table. The configuration must be that of the whole crawl.
    pub(crate) fn partition_table(&self) -> PartitionTable {
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
