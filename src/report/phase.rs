//! Phases of a daemon at work.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Phase of a daemon: its present activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Phase {
    /// The daemon starts, and nothing is open yet.
    Starting,
    /// Another process holds the storage folder.
    WaitingForFolder {
        /// Description of the holder, for people.
        holder: String,
    },
    /// Another process holds the lease in Redis.
    WaitingForLease {
        /// Description of the holder, for people.
        holder: String,
    },
    /// The filter is being recovered to the last batch that Redis records.
    Recovering,
    /// The daemon claims, tests and commits items, or waits for new items.
    Working,
    /// Commits wait because a list has reached its maximum length, or because too few replicas have
    /// the last commits.
    Backpressure {
        /// List or replicas that commits wait for.
        by: Backpressure,
    },
    /// The connection to Redis is lost. The daemon continues once Redis answers again.
    RedisAway {
        /// Last error of the connection.
        trouble: String,
    },
    /// Too few replicas have the lease (`redis.wait_replicas`). The daemon continues once they do.
    ReplicasAway {
        /// Number of replicas, and the remedy.
        trouble: String,
    },
    /// The disk of the storage folder does not answer. The daemon continues when the disk answers.
    DiskAway {
        /// Last message about the disk.
        trouble: String,
    },
    /// The daemon was asked to stop, and finishes the batches in flight.
    Stopping,
    /// The daemon ends, or has ended, because of an error that no retry can fix.
    Failed {
        /// Message of the error that ended the daemon.
        reason: String,
    },
}

/// A list, or the replicas, that commits wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backpressure {
    /// The sink has `sink.max_len` items.
    Sink,
    /// The rejects list has `rejects.max_len` items.
    Rejects,
    /// Fewer than `redis.wait_replicas` replicas have the last commits.
    Replicas,
}

impl Phase {
    /// The names of all phases, as in JSON and in the metric `urlseen_phase`.
    pub(crate) const NAMES: [&str; 11] = [
        "starting",
        "waiting-for-folder",
        "waiting-for-lease",
        "recovering",
        "working",
        "backpressure",
        "redis-away",
        "replicas-away",
        "disk-away",
        "stopping",
        "failed",
    ];

    /// Returns the name of the phase, one of `NAMES`.
    pub(crate) fn name(&self) -> String {
        let json = serde_json::to_value(self).expect("text");
        json["name"].as_str().expect("the tag").to_owned()
    }

    /// Returns true if the filter is recovered, and the daemon is connected and holds the lease.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::Working | Self::Backpressure { .. })
    }

    /// Returns true if the phase has a reason that an operator should know.
    pub(crate) fn is_trouble(&self) -> bool {
        use Phase::{Backpressure, DiskAway, Failed, RedisAway, ReplicasAway};
        matches!(
            self,
            Backpressure { .. }
                | RedisAway { .. }
                | ReplicasAway { .. }
                | DiskAway { .. }
                | Failed { .. }
        )
    }

    /// Returns true if the daemon has not failed: it works, or waits for something.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::WaitingForFolder { holder } => {
                write!(f, "waiting for the storage folder, which {holder} holds")
            }
            Self::WaitingForLease { holder } => {
                write!(f, "waiting for the lease, which {holder} holds")
            }
            Self::Recovering => f.write_str(
                "recovering: loading the filter up to the last batch that Redis records",
            ),
            Self::Working => f.write_str("working"),
            Self::Backpressure { by: Backpressure::Sink } => {
                f.write_str("backpressure: the sink has reached sink.max_len")
            }
            Self::Backpressure { by: Backpressure::Rejects } => f.write_str(
                "backpressure: the rejects list has reached rejects.max_len; run urlseen rejects \
                 list",
            ),
            Self::Backpressure { by: Backpressure::Replicas } => f.write_str(
                "backpressure: too few replicas have the last commits; see redis.wait_replicas",
            ),
            Self::RedisAway { trouble } => write!(f, "waiting for Redis: {trouble}"),
            Self::ReplicasAway { trouble } => write!(f, "waiting for replicas: {trouble}"),
            Self::DiskAway { trouble } => write!(f, "waiting for the disk: {trouble}"),
            Self::Stopping => f.write_str("stopping: finishing the batches in flight"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_the_same_name_in_json() {
        let text = String::new;
        let all = [
            Phase::Starting,
            Phase::WaitingForFolder { holder: text() },
            Phase::WaitingForLease { holder: text() },
            Phase::Recovering,
            Phase::Working,
            Phase::Backpressure { by: Backpressure::Sink },
            Phase::RedisAway { trouble: text() },
            Phase::ReplicasAway { trouble: text() },
            Phase::DiskAway { trouble: text() },
            Phase::Stopping,
            Phase::Failed { reason: text() },
        ];
        for (phase, name) in all.iter().zip(Phase::NAMES) {
            assert_eq!(phase.name(), name);
            assert_eq!(serde_json::to_value(phase).unwrap()["name"], name);
        }
        let ready = all.iter().filter(|phase| phase.is_ready()).map(Phase::name);
        assert_eq!(ready.collect::<Vec<_>>(), ["working", "backpressure"]);
        let dead = all.iter().filter(|phase| !phase.is_alive()).map(Phase::name);
        assert_eq!(dead.collect::<Vec<_>>(), ["failed"]);
    }
}
