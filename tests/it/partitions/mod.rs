//! Crawls with several partitions, on one server or in a Redis Cluster.

mod commands;
mod limits;
mod route;
mod run;

use std::collections::BTreeSet;

use redis::{Commands, Connection};
use tempfile::TempDir;
use urlseen_fingerprint::{Fingerprint, PartitionCount};
use urlseen_redis::hash_tag::{partition_key, partition_tag};

use crate::util::binary::{Daemon, Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Crawl with the default names and four partitions, on its own server.
pub(crate) struct Crawl {
    pub(crate) server: RedisServer,
    /// Folder with the storage folders of all partitions.
    pub(crate) folder: TempDir,
}

impl Crawl {
    pub(crate) fn new() -> Self {
        Self { server: RedisServer::start(), folder: TempDir::new().unwrap() }
    }

    /// Prepares a command with the configuration of the crawl.
    pub(crate) fn urlseen(&self, arguments: &[&str]) -> Run {
        urlseen(arguments.iter().copied())
            .dir(self.folder.path())
            .env("URLSEEN_REDIS__URL", self.server.url())
            .env("URLSEEN_PARTITIONS__COUNT", "4")
            .env("URLSEEN_FILTER__CAPACITY", "400_000")
            .env("URLSEEN_FILTER__ERROR_RATE", "1e-12")
    }

    /// Starts a daemon with these settings, and waits until it has the leases of `partitions`.
    pub(crate) fn start(&self, settings: &[&str], partitions: &[usize]) -> Daemon {
        let set = settings.iter().flat_map(|&setting| ["--set", setting]);
        let arguments: Vec<_> = ["run", "--json"].into_iter().chain(set).collect();
        let mut daemon = self.urlseen(&arguments).start();
        for partition in partitions {
            let line = format!("partition{{number={partition}}}: this daemon has taken the lease");
            daemon.wait_for_line(&line, SOON);
        }
        daemon
    }

    pub(crate) fn connection(&self) -> Connection {
        self.server.connection()
    }

    /// Pushes each fingerprint to the source of its partition.
    pub(crate) fn push(&self, fingerprints: &[String]) {
        let mut connection = self.connection();
        for fingerprint in fingerprints {
            let source = key("demo:discovered", partition_of(fingerprint));
            connection.rpush::<_, _, ()>(source, fingerprint).unwrap();
        }
    }

    /// Returns the items of all sinks, in the order of the partitions.
    pub(crate) fn sinks(&self) -> Vec<Vec<String>> {
        let mut connection = self.connection();
        let mut sink = |number| connection.lrange(key("demo:unseen", number), 0, -1).unwrap();
        (0..4).map(&mut sink).collect()
    }

    /// Waits until the sinks have this many items together.
    #[track_caller]
    pub(crate) fn wait_for_sinks(&self, items: usize) {
        wait_until(SOON, "items in the sinks", || {
            self.sinks().iter().map(Vec::len).sum::<usize>() >= items
        });
    }
}

/// Returns the name of a partition's key.
pub(crate) fn key(name: &str, partition: usize) -> String {
    let count = PartitionCount::new(4).unwrap();
    partition_key(name, &partition_tag(count.partitions().nth(partition).unwrap()))
}

/// Returns the number of the partition that has this fingerprint.
pub(crate) fn partition_of(fingerprint: &str) -> usize {
    PartitionCount::new(4).unwrap().of(&Fingerprint::from(fingerprint)).number().into()
}

/// Makes fingerprints, which are spread evenly over the partitions.
pub(crate) fn fingerprints(count: usize) -> Vec<String> {
    let digits = |number: usize| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1..=count).map(|number| format!("{:016x}{number:024x}", digits(number))).collect()
}

/// Checks that each fingerprint is once in the sink of its partition, and nothing else is there.
#[track_caller]
pub(crate) fn check_sinks(crawl: &Crawl, fingerprints: &[String]) {
    let sinks = crawl.sinks();
    for (number, sink) in sinks.iter().enumerate() {
        let wanted: BTreeSet<_> =
            fingerprints.iter().filter(|it| partition_of(it) == number).collect();
        let found: BTreeSet<_> = sink.iter().collect();
        assert_eq!(found.len(), sink.len(), "partition {number} has an item twice");
        assert_eq!(found, wanted, "partition {number}");
    }
}
