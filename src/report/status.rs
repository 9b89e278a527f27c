//! State of a daemon at some moment, for other programs.

use std::time::SystemTime;

use crate::config::{Config, SourceKind};
use serde::{Deserialize, Serialize};
use urlseen_engine::engine::query::Asked;
use urlseen_storage::{Footprint, Head};

use super::counts::{ByReason, Counts, Times};
use super::filter::FilterStatus;
use super::phase::Phase;
use super::rules::ByRule;

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
    /// The storage folder, once it is open.
    pub storage: Option<Footprint>,
}

impl Status {
    /// Returns the status of a daemon that starts.
    pub(crate) fn starting(config: &Config) -> Self {
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
            list_limits: Lists {
                sink: Some(config.sink.max_len).filter(|&most| most > 0),
                rejected: Some(config.rejects.max_len),
                ..Lists::default()
            },
            waiting_seconds: None,
            held: None,
            clients: None,
            filter: None,
            storage: None,
        }
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
    /// Seconds since the daemon read the length of the source. It read those of the sink and of the
    /// rejects at the same time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
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

/// Status of a daemon, or of each partition that it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Statuses {
    /// Status of a crawl with one partition, or of one partition.
    One(Box<Status>),
    /// Statuses of the partitions of a crawl that has several.
    Partitions {
        /// Statuses in the order of the partitions.
        partitions: Vec<Status>,
    },
    /// Status of a process that routes a list.
    Route(Box<RouteStatus>),
}

impl Statuses {
    /// Returns the statuses of all partitions that the process runs.
    pub(crate) fn all(&self) -> &[Status] {
        match self {
            Self::One(status) => std::slice::from_ref(status),
            Self::Partitions { partitions } => partitions,
            Self::Route(_) => &[],
        }
    }

    /// Describes the first phase that is not good, with its partition; `None` if all are good.
    pub(crate) fn first_bad(&self, is_good: impl Fn(&Phase) -> bool) -> Option<String> {
        let (partition, phase) = self.phases().into_iter().find(|(_, phase)| !is_good(phase))?;
        let partition = partition.map(|number| format!("partition {number}: "));
        Some(format!("{}{phase}", partition.unwrap_or_default()))
    }

    /// Returns the phase of the process or of each partition, with the number of the partition.
    pub(crate) fn phases(&self) -> Vec<(Option<u16>, &Phase)> {
        match self {
            Self::Route(status) => vec![(None, &status.phase)],
            _ => self.all().iter().map(|it| (it.partition, &it.phase)).collect(),
        }
    }
}

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
    #[serde(serialize_with = "moment::serialize")]
    pub since: SystemTime,
    /// Present phase of the router.
    pub phase: Phase,
    /// Key of the list that the router reads.
    pub source: String,
    /// Items that all partitions have acknowledged, and that have left the list.
    pub routed: u64,
    /// State of each partition, in order.
    pub partitions: Vec<RoutedStatus>,
}

/// State of a partition, as its router sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RoutedStatus {
    /// Number of the partition.
    pub partition: u16,
    /// Items that the partition has acknowledged.
    pub pushed: u64,
    /// Items that the partition has not acknowledged yet.
    pub waiting: u64,
    /// Last error of the connection to the partition; `None` while the connection works.
    pub trouble: Option<String>,
}

/// Points in time as written in JSON: RFC 3339, to the millisecond. For `#[serde(with)]`.
pub(crate) mod moment {
    use std::time::SystemTime;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_rfc3339_millis(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_rfc3339(&text).map_err(serde::de::Error::custom)
    }
}
