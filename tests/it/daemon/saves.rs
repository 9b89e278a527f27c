//! Saves of replicas, which bound the states that the storage folder must keep.

use super::{Crawl, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// C8: a replica that takes over may restart, and comes back with its own last save.
#[test]
fn the_daemon_asks_each_replica_for_its_last_save() {
    let (primary, port) = RedisServer::start_at_port(&[]);
    let crawl = Crawl::on(primary).set("storage.snapshot_bytes=4096").set("filter.capacity=1000");
    let (replica, _) = RedisServer::start_at_port(&["--replicaof", "127.0.0.1", &port]);
    let online = |count| {
        let info = crawl.server.cli(&["info", "replication"]);
        info.matches("state=online").count() == count
    };
    wait_until(SOON, "replica", || online(1));

    let daemon = crawl.start();
    crawl.push(&urls(0, 500));
    crawl.wait_for_sink(500);
    wait_until(SOON, "question", || {
        replica.cli(&["info", "commandstats"]).contains("cmdstat_client|setname")
    });
    wait_until(SOON, "snapshot", || daemon.stderr().contains("a snapshot of the filter is saved"));
    assert!(!daemon.stderr().contains("did not report when it last saved"));
    drop(daemon);

    // No server listens at the port that this replica reports.
    let unknown = ["--replicaof", "127.0.0.1", &port, "--replica-announce-port", "1"];
    let _unknown = RedisServer::start_at_port(&unknown);
    wait_until(SOON, "replica", || online(2));
    let mut daemon = crawl.start();
    daemon.wait_for_line("the replica 127.0.0.1:1 did not report when it last saved", SOON);
    crawl.push(&urls(500, 500));
    crawl.wait_for_sink(1000);
    daemon.wait_for_line("a snapshot of the filter is saved", SOON);
}
