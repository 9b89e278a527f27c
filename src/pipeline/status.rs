//! State of a daemon at some moment, for other programs.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::by_reason::ByReason;
use super::by_rule::ByRule;
use super::counts::Counts;
use super::lost::LostUrls;
use super::measured::MeasuredStatus;
use super::moment;
use super::phase::Phase;
use super::times::Times;
use urlseen_core::filter::Fill;
use urlseen_core::filter::generation::{Generations, LIVE};
use urlseen_engine::config::{Config, SourceKind};
use urlseen_engine::engine::Gauges;
use urlseen_engine::engine::query::Asked;
use urlseen_engine::engine::store::Footprint;

/// State of a daemon, as its endpoint reports it. A value that is not known (yet) is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the crawl, `crawl.name`.
    pub crawl: String,
    /// Number of the partition, if the crawl has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u16>,
    /// The version of the program that runs.
    pub version: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// Time at which the daemon started.
    #[serde(with = "moment")]
    pub since: SystemTime,
    /// Present phase of the daemon.
    pub phase: Phase,
    /// Address of Redis, without the password.
    pub redis: String,
    /// The last committed batch.
    pub head: Option<Head>,
    /// Seconds until the lease ends, unless it is renewed before.
    pub lease_seconds: Option<f64>,
    /// Counts since the start of the daemon.
    pub counts: Counts,
    /// Numbers of items by rule.
    #[serde(flatten)]
    pub rules: ByRule,
    /// Numbers of rejected items by reason.
    #[serde(default)]
    pub rejected_by_reason: ByReason,
    /// Durations of the daemon's operations.
    #[serde(default)]
    pub times: Times,
    /// Counts of queries since the start, from `serve.listen` and from `forget.key`.
    #[serde(default)]
    pub asked: Asked,
    /// Lengths of the lists in Redis.
    pub lists: Lists,
    /// Maximum lengths of the lists that have one.
    #[serde(default)]
    pub list_limits: Lists,
    /// Upper bound of the age of the oldest item that is not committed, in seconds; 0 if no item
    /// waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<f64>,
    /// Requests that consumers hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStatus>,
    /// Clients of `serve.listen`, if the daemon listens there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsStatus>,
    /// The filter, once there is one.
    pub filter: Option<FilterStatus>,
    /// Number of fingerprints of each shard. Empty if the filter is not in memory, or is not split
    /// into shards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<u64>,
    /// The storage folder, once it is open.
    pub storage: Option<Storage>,
}

impl Status {
    /// Returns the status of a daemon that starts.
    pub fn starting(config: &Config) -> Self {
        Self {
            crawl: config.crawl.name.clone(),
            partition: config.partition.has_others().then(|| config.partition.number()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: SystemTime::now(),
            phase: Phase::Starting,
            redis: if config.source.kind == SourceKind::None {
                "none: there is no source".to_owned()
            } else {
                config.redis.url.to_string()
            },
            head: None,
            lease_seconds: None,
            counts: Counts::default(),
            rules: ByRule::new(config),
            rejected_by_reason: ByReason::default(),
            times: Times::default(),
            asked: Asked::default(),
            lists: Lists::default(),
            list_limits: Lists::limits(config),
            waiting_seconds: None,
            held: None,
            clients: None,
            filter: None,
            shards: Vec::new(),
            storage: None,
        }
    }
}

/// A batch that was committed: see [`urlseen_core::storage::Head`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of the last commit.
    pub seq: u64,
    /// Id of the last commit, 16 hex digits.
    pub commit_id: String,
}

impl From<urlseen_core::storage::Head> for Head {
    fn from(head: urlseen_core::storage::Head) -> Self {
        Self { seq: head.seq, commit_id: head.commit_id.to_string() }
    }
}

/// Lengths of the lists in Redis when the daemon last read them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    /// Items that wait to be claimed.
    pub source: Option<u64>,
    /// Items that are claimed and not committed.
    pub processing: Option<u64>,
    /// Unseen items that wait for crawlers.
    pub sink: Option<u64>,
    /// Items that could not be read.
    pub rejected: Option<u64>,
    /// Items on the over-limit list after the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_limit: Option<u64>,
    /// Seconds since the daemon read the length of the source. It read those of the sink and of the
    /// rejects at the same time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
}

impl Lists {
    /// Returns the configured maximum lengths.
    fn limits(config: &Config) -> Self {
        let Config { sink, rejects, over_limit, limits, .. } = config;
        Self {
            sink: Some(sink.max_len).filter(|&most| most > 0),
            rejected: Some(rejects.max_len),
            over_limit: Some(over_limit.max_len).filter(|_| !limits.is_empty()),
            ..Self::default()
        }
    }
}

/// Held requests when the daemon last counted them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStatus {
    /// Consumers that hold requests, or can hold some.
    pub consumers: u64,
    /// Requests that they hold.
    pub requests: u64,
}

impl HeldStatus {
    /// Adds the requests of another partition. A consumer can hold requests of several partitions,
    /// so the numbers of consumers are not added.
    pub(crate) fn and(self, other: Self) -> Self {
        let consumers = self.consumers.max(other.consumers);
        Self { consumers, requests: self.requests + other.requests }
    }
}

/// Clients of `serve.listen`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsStatus {
    /// Clients that are connected.
    pub open: u64,
    /// Clients that have connected since the start.
    pub accepted: u64,
    /// Clients that were refused, because as many as `serve.max_clients` were connected.
    pub refused: u64,
}

/// State of the filter at some moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FilterStatus {
    /// Number of fingerprints in the filter.
    pub keys: u64,
    /// Number of fingerprints that the filter is made for.
    pub capacity: u64,
    /// Number of fingerprints up to which the filter keeps its error rate. `None` for a filter that
    /// takes more memory instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Number of keys divided by the capacity.
    pub fill: f64,
    /// Share of unseen items that the filter reports as seen, computed from its fill.
    pub error_rate: f64,
    /// Part of the error rate that a frozen filter causes, to which urlseen storage convert gave a
    /// new filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_error_rate: Option<f64>,
    /// Expected number of URLs that the filter has lost so far: unseen ones that it reported as
    /// seen. `None` if the parameters of the filter are not known, as for an imported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_urls: Option<f64>,
    /// Measured error rate of the whole crawl. `None` if there is no sample, or if the filter has
    /// fingerprints from before its sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredStatus>,
    /// Seconds until the filter holds `limit` fingerprints, if it grows as in the last one to two
    /// minutes. `None` if it does not grow, or holds more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_seconds: Option<f64>,
    /// Generations of the fingerprints, if they expire (`filter.expire_after`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generations: Option<GenerationsStatus>,
    /// Memory of the filter, in bytes.
    pub bytes: u64,
    /// Number of fingerprints that were forgotten and have not passed again.
    #[serde(default)]
    pub forgotten: u64,
}

/// Generations of the fingerprints of a filter. A generation lasts a fifth of
/// `filter.expire_after`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GenerationsStatus {
    /// Number of the present generation, counted from 1970.
    pub number: u32,
    /// Seconds until the next generation begins. `None` before the daemon has begun a generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_seconds: Option<f64>,
    /// Number of fingerprints by age in generations, those of the present generation first.
    pub keys: [u64; LIVE as usize],
    /// Number of expired fingerprints that still take memory.
    pub expired: u64,
    /// Number of expired fingerprints whose memory was freed since the filter was loaded.
    #[serde(default)]
    pub swept: u64,
}

impl GenerationsStatus {
    /// Adds the fingerprints of another partition.
    fn and(&self, other: &Self) -> Self {
        let keys = std::array::from_fn(|age| self.keys[age] + other.keys[age]);
        let number = self.number.max(other.number);
        let (expired, swept) = (self.expired + other.expired, self.swept + other.swept);
        Self { number, next_seconds: None, keys, expired, swept }
    }
}

impl From<Generations> for GenerationsStatus {
    fn from(generations: Generations) -> Self {
        let Generations { now, keys, expired, swept, .. } = generations;
        Self { number: now.get(), next_seconds: None, keys, expired, swept }
    }
}

impl FilterStatus {
    /// Returns the state of a filter with this fill and with `forgotten` tombstones.
    pub(super) fn new(fill: Fill, error_rate: f64, forgotten: usize, lost: &mut LostUrls) -> Self {
        let Fill { keys, capacity, bytes, .. } = fill;
        let (fill, forgotten) = (fill.share(), forgotten as u64);
        let lost_urls = lost.at(keys, error_rate);
        Self {
            keys,
            capacity,
            limit: None,
            fill,
            error_rate,
            frozen_error_rate: None,
            lost_urls,
            measured: None,
            full_seconds: None,
            generations: None,
            bytes,
            forgotten,
        }
    }

    /// Returns the state of a filter in memory. The computation of the error rate takes up to a
    /// millisecond.
    pub(super) fn of_gauges(gauges: &Gauges, lost: &mut LostUrls) -> Self {
        let frozen_error_rate = Some(gauges.frozen_error_rate()).filter(|&rate| rate > 0.0);
        let (fill, error_rate) = (gauges.fill(), gauges.error_rate());
        let generations = gauges.generations().map(GenerationsStatus::from);
        let status = Self::new(fill, error_rate, gauges.tombstones(), lost);
        let measured = gauges.measured().map(MeasuredStatus::from);
        Self { frozen_error_rate, measured, generations, ..status }
    }

    /// Sets the number of fingerprints up to which the filter keeps its error rate.
    pub(super) fn limited(self, limit: Option<u64>) -> Self {
        Self { limit, ..self }
    }

    /// Adds the state of the filter of another partition. The error rate is then the mean, weighted
    /// with the numbers of keys.
    pub(super) fn and(&self, other: &Self) -> Self {
        let (keys, capacity) = (self.keys + other.keys, self.capacity + other.capacity);
        let mean = |one: f64, its: f64| {
            (one * self.keys as f64 + its * other.keys as f64) / keys.max(1) as f64
        };
        let frozen = [self, other].map(|it| it.frozen_error_rate);
        Self {
            keys,
            capacity,
            limit: self.limit.zip(other.limit).map(|(one, other)| one + other),
            fill: keys as f64 / capacity.max(1) as f64,
            error_rate: mean(self.error_rate, other.error_rate),
            frozen_error_rate: frozen[0].or(frozen[1]).map(|_| {
                let [one, its] = frozen.map(Option::unwrap_or_default);
                mean(one, its)
            }),
            lost_urls: self.lost_urls.zip(other.lost_urls).map(|(one, other)| one + other),
            measured: self.measured.zip(other.measured).map(|(one, other)| one.and(&other)),
            full_seconds: None,
            generations: match (self.generations, other.generations) {
                (Some(own), Some(its)) => Some(own.and(&its)),
                (own, its) => own.or(its),
            },
            bytes: self.bytes + other.bytes,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

/// State of a storage folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Path of the folder, `storage.dir`.
    pub dir: PathBuf,
    /// Rule for syncing the log, `storage.fsync`.
    pub fsync: String,
    /// Number of snapshots in the folder.
    pub snapshots: u64,
    /// Time at which the newest snapshot was finished.
    #[serde(with = "moment::optional")]
    pub last_snapshot: Option<SystemTime>,
    /// Size of the log in the folder, in bytes.
    pub log_bytes: u64,
    /// Number of bytes written to the log since the start of the daemon.
    pub written_bytes: u64,
    /// Archive of the folder, if it has one.
    #[serde(default)]
    pub archive: Option<Archive>,
}

impl From<Footprint> for Storage {
    fn from(kept: Footprint) -> Self {
        let Footprint { dir, fsync, snapshots, last_snapshot, log_bytes, logged, archive } = kept;
        let archive = archive.map(|(bytes, is_whole)| Archive { bytes, is_whole });
        let (fsync, written_bytes) = (fsync.to_string(), logged);
        Self { dir, fsync, snapshots, last_snapshot, log_bytes, written_bytes, archive }
    }
}

/// Archive of the fingerprints that were emitted or imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// Size of the archive, in bytes.
    pub bytes: u64,
    /// True if the archive and the log together have all fingerprints of the filter.
    pub is_whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_lose_the_sum_of_their_losses_if_all_are_known() {
        let status = |lost_urls| FilterStatus {
            keys: 10,
            capacity: 100,
            limit: Some(100),
            fill: 0.1,
            error_rate: 0.5,
            frozen_error_rate: None,
            lost_urls,
            measured: None,
            full_seconds: None,
            generations: None,
            bytes: 64,
            forgotten: 0,
        };
        let lost = |one, other| status(one).and(&status(other)).lost_urls;
        assert_eq!(lost(Some(1.5), Some(2.0)), Some(3.5));
        assert_eq!(lost(Some(1.5), None), None);
    }
}
