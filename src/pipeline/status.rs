//! What a daemon looks like from outside at some moment.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::moment;
use super::phase::Phase;
use urlseen_core::filter::Fill;
use urlseen_engine::config::{Config, SourceKind};
use urlseen_engine::engine::Gauges;
use urlseen_engine::engine::query::Asked;
use urlseen_engine::engine::store::Footprint;

/// Everything that the endpoint tells of a daemon. What is not known (yet) is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `crawl.name`.
    pub crawl: String,
    /// The version of the program that runs.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it was started.
    #[serde(with = "moment")]
    pub since: SystemTime,
    /// What it is doing.
    pub phase: Phase,
    /// Where Redis is, without the password.
    pub redis: String,
    /// The last batch committed.
    pub head: Option<Head>,
    /// For how many more seconds the lease is held unless it is renewed.
    pub lease_seconds: Option<f64>,
    /// What was done since the start.
    pub counts: Counts,
    /// What each rule let pass; nothing where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    /// What was asked since the start, at `serve.listen` and by way of `forget.key`.
    #[serde(default)]
    pub asked: Asked,
    /// How long the lists in Redis are.
    pub lists: Lists,
    /// The filter, once there is one.
    pub filter: Option<FilterStatus>,
    /// The storage folder, once it is open.
    pub storage: Option<Storage>,
}

impl Status {
    /// Describes a daemon that starts.
    pub fn starting(config: &Config) -> Self {
        let passed = config.pass.iter().map(|rule| Passed { rule: rule.name.clone(), items: 0 });
        Self {
            crawl: config.crawl.name.clone(),
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
            passed: passed.collect(),
            asked: Asked::default(),
            lists: Lists::default(),
            filter: None,
            storage: None,
        }
    }
}

/// A batch that was committed: see [`urlseen_core::storage::Head`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number.
    pub seq: u64,
    /// Its id, 16 hex digits.
    pub commit_id: String,
}

impl From<urlseen_core::storage::Head> for Head {
    fn from(head: urlseen_core::storage::Head) -> Self {
        Self { seq: head.seq, commit_id: head.commit_id.to_string() }
    }
}

/// A rule, `[[pass]]`, and what it did since the daemon was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Its name.
    pub rule: String,
    /// Items that passed by it.
    pub items: u64,
}

/// How long the lists in Redis are, as last seen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    /// Items that wait to be claimed.
    pub source: Option<u64>,
    /// Items claimed and not committed.
    pub processing: Option<u64>,
    /// Unseen items that wait for crawlers.
    pub sink: Option<u64>,
    /// Items that could not be read.
    pub rejected: Option<u64>,
}

/// The filter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FilterStatus {
    /// Fingerprints in it.
    pub keys: u64,
    /// Fingerprints that it is made for.
    pub capacity: u64,
    /// Its keys as a share of its capacity.
    pub fill: f64,
    /// The share of unseen items that it takes for seen now, computed from its fill.
    pub error_rate: f64,
    /// The memory that it takes.
    pub bytes: u64,
    /// Fingerprints in it that were forgotten and have not passed again.
    #[serde(default)]
    pub forgotten: u64,
}

impl FilterStatus {
    /// State of a filter of which so many keys are `forgotten`.
    pub(super) fn new(fill: Fill, error_rate: f64, forgotten: usize) -> Self {
        let Fill { keys, capacity, bytes, .. } = fill;
        let (fill, forgotten) = (fill.share(), forgotten as u64);
        Self { keys, capacity, fill, error_rate, bytes, forgotten }
    }
}

impl From<&Arc<Gauges>> for FilterStatus {
    fn from(gauges: &Arc<Gauges>) -> Self {
        Self::new(gauges.fill(), gauges.error_rate(), gauges.tombstones())
    }
}

/// The storage folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// `storage.dir`.
    pub dir: PathBuf,
    /// `storage.fsync`.
    pub fsync: String,
    /// Snapshots in it.
    pub snapshots: u64,
    /// When the last of them was finished.
    #[serde(with = "moment::optional")]
    pub last_snapshot: Option<SystemTime>,
    /// Bytes of log in it.
    pub log_bytes: u64,
    /// Bytes written to the log since the start.
    pub written_bytes: u64,
    /// Its archive, if it has one.
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

/// The archive of the fingerprints that were let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// Bytes of it.
    pub bytes: u64,
    /// Whether it and the log have all that the filter holds.
    pub is_whole: bool,
}
