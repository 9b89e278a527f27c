//! What a daemon looks like from outside at some moment.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Phase;
use super::moment;

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

/// What was done since the daemon was started. None of these ever goes down.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Items committed that were unseen, and went on.
    pub unseen: u64,
    /// Items committed that had been seen before.
    pub seen: u64,
    /// Items passed on unchecked, as they asked (`dont_filter`) or as a rule has it.
    pub unfiltered: u64,
    /// Items that could not be read.
    pub rejected: u64,
    /// Rejects dropped from a full list (`rejects.when_full = "drop-oldest"`).
    pub rejects_dropped: u64,
    /// Batches committed.
    pub batches: u64,
    /// Batches judged, not committed, and judged again.
    pub batches_aborted: u64,
    /// Times that the filter was loaded from the storage folder.
    pub recoveries: u64,
    /// Times that it went back because Redis had come back with older data.
    pub rollbacks: u64,
    /// Snapshots finished.
    pub snapshots: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
}

impl Counts {
    /// All items committed.
    pub(crate) fn items(&self) -> u64 {
        self.unseen + self.seen + self.unfiltered + self.rejected
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

/// Questions about single fingerprints, by their answers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Seen.
    pub seen: u64,
    /// Unseen; those that were to be added are seen since.
    pub unseen: u64,
    /// Not done, as there was no room.
    pub full: u64,
    /// Forgotten, to pass once more.
    pub forgotten: u64,
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
    /// Its archive, if it has one.
    #[serde(default)]
    pub archive: Option<Archive>,
}

/// The archive of the fingerprints that were let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// Bytes of it.
    pub bytes: u64,
    /// Whether it and the log have all that the filter holds.
    pub is_whole: bool,
}
