//! Consumers and filters with a Redis Cluster, and with Sentinels.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use redis::Commands;
use tempfile::TempDir;
use urlseen::{
    AsyncFilterExt, AsyncRedisFilter, Consumer, ConsumerOptions, Delivery, Error, ErrorKind,
    FilterExt, RedisFilter, RedisOptions,
};

use super::{PAGES, SOURCE, links, page, pop, text};
use crate::connect::cluster::{Cluster, Node};
use crate::connect::sentinels::{self, Sentinel};
use crate::connect::slot_moves::{begin_move, cluster_with_replica, end_move, wait_for_role};
use crate::library::{impatient, native};
use crate::partitions::{fingerprints, key, partition_of};
use crate::util::binary::{Daemon, urlseen};
use crate::util::redis::{RedisServer, free_port};
use crate::util::wait::{SOON, wait_until};

/// Time-out after which no consumer of a test counts as stopped.
const PATIENT: &str = "held.timeout=10m";

/// Starts a daemon with four partitions and a setting, and waits until it has all leases.
fn start(url: &str, folder: &TempDir, setting: &str) -> Daemon {
    let mut daemon = urlseen(["run", "--json", "--set", "partitions.count=4", "--set", setting])
        .dir(folder.path())
        .env("URLSEEN_REDIS__URL", url)
        .env("URLSEEN_FILTER__CAPACITY", "400_000")
        .env("URLSEEN_FILTER__ERROR_RATE", "1e-12")
        .start();
    for partition in 0..4 {
        let line = format!("partition{{number={partition}}}: this daemon has taken the lease");
        daemon.wait_for_line(&line, SOON);
    }
    daemon
}

fn end(daemon: Daemon) {
    daemon.signal(rustix::process::Signal::TERM);
    let ended = daemon.output(SOON);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
}

/// Repeats a call until Redis answers it.
fn until_answered<T>(mut call: impl FnMut() -> Result<T, Error>) -> T {
    loop {
        match call() {
            Ok(answer) => return answer,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Redis, "{error}"),
        }
    }
}

/// Returns the slot of a partition.
fn slot(node: &Node, partition: usize) -> u16 {
    node.server.cli(&["cluster", "keyslot", &key(SOURCE, partition)]).parse().unwrap()
}

/// Returns the number of the node that has a partition.
fn node_of(cluster: &Cluster, partition: usize) -> usize {
    let slot = slot(&cluster.nodes[0], partition);
    [5461, 10_923].partition_point(|&first| first <= slot)
}

/// Crawls all pages with several threads. `hold` holds a thread back before it pops.
fn crawl(consumers: &[Consumer], fetched: &Mutex<HashMap<String, usize>>, hold: impl Fn() + Sync) {
    thread::scope(|scope| {
        for consumer in consumers.iter().chain(consumers) {
            scope.spawn(|| {
                while until_answered(|| consumer.pending()) > 0 {
                    hold();
                    let Some(delivery) = until_answered(|| consumer.pop()) else { continue };
                    let item = text(&delivery).to_owned();
                    until_answered(|| consumer.finish(&delivery, links(&item)));
                    *fetched.lock().unwrap().entry(item).or_default() += 1;
                }
            });
        }
    });
}

#[test]
fn consumers_fetch_each_page_once_over_a_failover_and_a_move_of_a_slot() {
    let (cluster, folder) = (cluster_with_replica(), TempDir::new().unwrap());
    let [first, second, third, replica] = &cluster.nodes[..] else { panic!("four nodes") };
    let url = cluster.url(&[1, 0]);
    let daemon = start(&url, &folder, PATIENT);
    let open = || Consumer::open(&url, SOURCE).unwrap();
    let consumers = [open(), open()];
    consumers[0].push([page(0), page(0)]).unwrap();
    let fetched = Mutex::new(HashMap::<String, usize>::new());
    let count = || fetched.lock().unwrap().len();
    // Partition 3 is on the third node. Its slot is being moved while pages are fetched.
    let moved = slot(first, 3);
    let (has_failed_over, is_moving) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(SOON, "some pages", || count() >= PAGES / 4);
            replica.order("cluster failover");
            wait_for_role(replica, "master");
            has_failed_over.store(true, SeqCst);
            wait_until(SOON, "some more pages", || count() >= PAGES / 2);
            begin_move(moved, third, second);
            is_moving.store(true, SeqCst);
            // Each thread needs the moving slot soon, and repeats its call until the end of the
            // move.
            wait_until(SOON, "refused calls", || {
                let errors = third.server.cli(&["info", "errorstats"]);
                errors.contains("errorstat_ASK") || errors.contains("errorstat_TRYAGAIN")
            });
            end_move(moved, third, second, &[replica]);
        });
        // The crawl must not be over before the failover and the move.
        let hold = || {
            wait_until(SOON, "the failover", || {
                count() < PAGES / 4 || has_failed_over.load(SeqCst)
            });
            wait_until(SOON, "the move", || count() < PAGES / 2 || is_moving.load(SeqCst));
        };
        crawl(&consumers, &fetched, hold);
    });
    let fetched = fetched.into_inner().unwrap();
    assert_eq!(fetched.len(), PAGES);
    assert!(fetched.values().all(|&times| times == 1), "{fetched:?}");
    drop(consumers);
    end(daemon);
}

/// The daemon requeues the requests of a consumer without heartbeats after a second.
#[test]
fn the_heartbeats_of_a_consumer_reach_all_nodes() {
    let (cluster, folder) = (Cluster::start(), TempDir::new().unwrap());
    let url = cluster.url(&[2]);
    let daemon = start(&url, &folder, "held.timeout=1s");
    let consumer = Consumer::open(&url, SOURCE).unwrap();
    let items = fingerprints(40);
    consumer.push(&items).unwrap();
    let held: Vec<_> = items.iter().map(|_| pop(&consumer)).collect();
    for number in 0..4 {
        let consumers = format!("urlseen:{}:consumers", key(SOURCE, number));
        let mut connection = cluster.nodes[node_of(&cluster, number)].server.connection();
        let mut beats = || connection.hget::<_, _, u64>(&consumers, consumer.name()).unwrap();
        let before = beats();
        wait_until(SOON, "three seconds of heartbeats", || beats() > before + 3000);
    }
    assert!(held.iter().all(Delivery::is_held));
    assert_eq!(consumer.pending().unwrap(), 40);
    drop(consumer);
    end(daemon);
}

/// A node that is away does not stop the pops from the others.
#[test]
fn pops_go_on_while_a_node_is_away() {
    let (mut cluster, folder) = (Cluster::start(), TempDir::new().unwrap());
    for node in &cluster.nodes {
        // A cluster without one of its nodes goes on with the slots of the others.
        node.order("config set cluster-require-full-coverage no");
    }
    let url = cluster.url(&[0, 1, 2]);
    let daemon = start(&url, &folder, PATIENT);
    let options = ConsumerOptions { retries: 0, ..ConsumerOptions::default() };
    let consumer = Consumer::open_with(&url, SOURCE, options).unwrap();
    let items = fingerprints(40);
    consumer.push(&items).unwrap();
    let dead: Vec<usize> = (0..4).filter(|&number| node_of(&cluster, number) == 2).collect();
    let length = |number: usize| {
        let mut connection = cluster.nodes[node_of(&cluster, number)].server.connection();
        connection.llen::<_, usize>(key("demo:unseen", number)).unwrap()
    };
    wait_until(SOON, "all items", || (0..4).map(length).sum::<usize>() == items.len());
    end(daemon);
    cluster.nodes[2].server.kill();
    let alive = items.iter().filter(|it| !dead.contains(&partition_of(it))).count();
    assert!(!dead.is_empty() && alive > 0);
    let mut popped = Vec::<Delivery>::new();
    wait_until(SOON, "the requests of the other nodes", || {
        popped.extend(consumer.pop().unwrap());
        popped.len() == alive
    });
    assert!(consumer.pending().is_err(), "a partition that was not counted may have requests");
}

#[tokio::test]
async fn a_crawl_with_one_partition_and_a_filter_are_on_the_node_of_their_slot() {
    let (cluster, folder) = (Cluster::start(), TempDir::new().unwrap());
    let url = cluster.url(&[1, 2]);
    let keys = ["source.key={demo}:discovered", "sink.key={demo}:unseen"];
    let more = ["rejects.key={demo}:rejected", "forget.key={demo}:forget"];
    let set = keys.iter().chain(&more).flat_map(|key| ["--set", *key]);
    let daemon = urlseen(["run", "--json"].into_iter().chain(set)).dir(folder.path());
    let mut daemon =
        daemon.env("URLSEEN_REDIS__URL", &url).env("URLSEEN_FILTER__CAPACITY", "1e5").start();
    daemon.wait_for_line("this daemon has taken the lease", SOON);
    let consumer = Consumer::open(&url, "{demo}:discovered").unwrap();
    consumer.push([page(0)]).unwrap();
    let delivery = pop(&consumer);
    assert!(consumer.finish(&delivery, [page(1)]).unwrap());
    assert_eq!(text(&pop(&consumer)), page(1));
    end(daemon);

    let filter = RedisFilter::open(&url, "{demo}:filter", &native()).unwrap();
    assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false]);
    let filter = AsyncRedisFilter::open(&url, "{demo}:filter", &native()).await.unwrap();
    assert_eq!(filter.extend(["b", "c"]).await.unwrap(), [false, true]);
    let refused = RedisFilter::open(&url, "demo:filter", &native()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Spec);
    assert!(refused.to_string().contains("such as {demo:filter}"), "{refused}");
}

/// An old primary that the Sentinels have replaced may go on answering, but its writes are lost.
#[tokio::test]
async fn a_filter_leaves_an_old_primary() {
    let ((_first, from), (_second, to)) =
        (RedisServer::start_at_port(&[]), RedisServer::start_at_port(&[]));
    let sentinel = Sentinel::start(&from, 1, "");
    let url = sentinels::url(&[&sentinel.port]);
    let filter = RedisFilter::open(&url, "f", &native()).unwrap();
    let tasks = AsyncRedisFilter::open(&url, "f", &native()).await.unwrap();
    assert!(filter.add("a").unwrap() && tasks.contains("a").await.unwrap());
    sentinel.server.run::<()>("SENTINEL REMOVE mymaster");
    sentinel.server.run::<()>(&format!("SENTINEL MONITOR mymaster 127.0.0.1 {to} 1"));
    wait_until(SOON, "the other primary", || !filter.contains("a").unwrap());
    let left = async { while tasks.contains("a").await.unwrap() {} };
    tokio::time::timeout(SOON, left).await.expect("the other primary");
    let unknown = url.replace("mymaster", "other");
    let refused = RedisFilter::open_with(&unknown, "f", &native(), impatient()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("know no primary other"), "{refused}");
    let nowhere = sentinels::url(&[&free_port()]);
    let options = RedisOptions { retries: 0, ..RedisOptions::default() };
    let away = RedisFilter::open_with(&nowhere, "f", &native(), options).unwrap_err();
    assert!(away.to_string().contains("no Sentinel has named the primary mymaster"), "{away}");
}
