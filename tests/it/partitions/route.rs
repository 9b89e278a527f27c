//! Routers, which move a list to the partitions.

use std::collections::{BTreeMap, HashSet};

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::run::get;
use super::{Crawl, check_sinks, fingerprints, key};
use crate::connect::cluster::Cluster;
use crate::util::binary::urlseen;
use crate::util::redis::{RedisServer, free_port};
use crate::util::wait::{SOON, wait_until};

const LIST: &str = "demo:discovered";
const PROCESSING: &str = "urlseen:{demo:discovered}:processing";
const LEASE: &str = "urlseen:{demo:discovered}:lease";

/// Makes a request that no filter checks.
fn unfiltered(number: usize) -> String {
    format!(r#"{{"url": "https://example.com/{number}", "dont_filter": true}}"#)
}

impl Crawl {
    fn push_to_list(&self, items: &[String]) {
        let mut connection = self.connection();
        for items in items.chunks(1000) {
            connection.rpush::<_, _, ()>(LIST, items).unwrap();
        }
    }

    /// Moves the whole list, and returns the summary.
    #[track_caller]
    fn route(&self) -> Value {
        let ran = self.urlseen(&["route", "--drain", "--json"]).output();
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        serde_json::from_str(ran.text()).unwrap()
    }

    /// Counts the items of all lists with this name, by item.
    /// Counts the items that have not left the list.
    fn waiting(&self) -> usize {
        let mut lengths = redis::pipe();
        lengths.atomic().llen(LIST).llen(PROCESSING);
        let (list, processing): (usize, usize) = lengths.query(&mut self.connection()).unwrap();
        list + processing
    }

    /// Counts how often each item is in the lists of the partitions.
    fn counts(&self, name: &str) -> BTreeMap<String, usize> {
        let mut connection = self.connection();
        let mut counts = BTreeMap::new();
        for number in 0..4 {
            let items: Vec<String> = connection.lrange(key(name, number), 0, -1).unwrap();
            for item in items {
                *counts.entry(item).or_default() += 1;
            }
        }
        counts
    }
}

#[test]
fn each_item_goes_to_its_partition() {
    let crawl = Crawl::new();
    let items = fingerprints(1000);
    let url = "https://example.com/".to_owned();
    crawl.push_to_list(&items);
    crawl.push_to_list(&items[..100]);
    let others = [url.clone(), unfiltered(1), unfiltered(1), "no URL".to_owned()];
    crawl.push_to_list(&others);
    let summary = crawl.route();
    assert_eq!(summary["routed"], 1104);
    let pushed = summary["pushed"].as_array().unwrap();
    assert_eq!(pushed.iter().map(|it| it.as_u64().unwrap()).sum::<u64>(), 1104);
    let mut connection = crawl.connection();
    assert!(!connection.exists::<_, bool>(&[LIST, PROCESSING]).unwrap());
    let ran = crawl.urlseen(&["run", "--drain"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let sinks = crawl.counts("demo:unseen");
    assert_eq!(sinks.get(&unfiltered(1)), Some(&2));
    assert_eq!(sinks.get(&url), Some(&1));
    assert_eq!(sinks.values().sum::<usize>(), 1000 + 1 + 2);
    let rejects = crawl.counts("demo:rejected");
    let [reject] = &rejects.keys().collect::<Vec<_>>()[..] else { panic!("{rejects:?}") };
    assert!(reject.contains("no URL"), "{reject}");
}

/// A killed router has pushed items that the next one pushes again. The partition's filter drops
/// those with a fingerprint.
#[test]
fn a_killed_router_loses_nothing_and_repeats_only_unfiltered_items() {
    let crawl = Crawl::new();
    let filtered = fingerprints(4500);
    let others: Vec<_> = (0..4500).map(unfiltered).collect();
    let mixed = filtered.iter().zip(&others).flat_map(|(one, other)| [one, other]).cloned();
    crawl.push_to_list(&mixed.collect::<Vec<_>>());
    let mut killed = 0;
    while crawl.waiting() > 0 {
        let mut router = crawl.urlseen(&["route", "--standby", "--set", "source.batch=50"]).start();
        let most = crawl.waiting().saturating_sub(1500);
        wait_until(SOON, "progress", || crawl.waiting() <= most);
        router.signal(Signal::KILL);
        router.wait(SOON);
        // The lease of a killed router would end after 15 s.
        crawl.connection().del::<_, ()>(LEASE).unwrap();
        killed += 1;
    }
    assert!(killed >= 5, "{killed} kills");
    let ran = crawl.urlseen(&["run", "--drain"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let sinks = crawl.counts("demo:unseen");
    assert_eq!(sinks.len(), filtered.len() + others.len());
    assert!(filtered.iter().all(|item| sinks[item] == 1));
}

/// Rule C7: in Valkey, and in Redis since 7.2, `WAIT` covers the last write of its own connection.
/// It answers at once if this connection wrote nothing.
#[test]
fn a_router_with_a_new_connection_also_waits_for_replicas() {
    let (server, port) = RedisServer::start_valkey_at_port();
    let (replica, _) = server.start_replica(&port);
    let crawl = Crawl { server, folder: TempDir::new().unwrap() };
    let admin = free_port();
    let arguments = ["route", "--set", "redis.wait_replicas=1", "--listen"];
    let mut router = crawl.urlseen(&arguments).arg(format!("127.0.0.1:{admin}")).start();
    let wait_for_lag = || {
        wait_until(SOON, "partitions that wait for the replica", || {
            (0..4).all(|number| {
                let labels = format!("crawl=\"demo\",partition=\"{number}\"");
                get(&admin, "/metrics").contains(&format!("route_up{{{labels}}} 0"))
            })
        });
    };
    router.wait_for_line("the admin endpoint", SOON);
    wait_until(SOON, "a ready router", || get(&admin, "/readyz") == "ok\n");
    replica.pause();
    let items: Vec<_> = (0..100).map(unfiltered).collect();
    crawl.push_to_list(&items);
    wait_for_lag();
    crawl.server.cli(&["client", "kill", "type", "normal"]);
    for number in 0..4 {
        router.wait_for_line(&format!("partition {number} takes items again"), SOON);
    }
    wait_for_lag();
    let mut connection = crawl.connection();
    assert_eq!(connection.llen::<_, usize>(PROCESSING).unwrap(), items.len());
    replica.resume();
    wait_until(SOON, "routed items", || connection.llen::<_, usize>(PROCESSING).unwrap() == 0);
    router.signal(Signal::TERM);
    assert_eq!(router.output(SOON).code(), Some(0));
    assert_eq!(crawl.counts(LIST).len(), items.len());
}

#[test]
fn one_process_moves_a_list_and_another_takes_over() {
    let crawl = Crawl::new();
    let first = crawl.urlseen(&["route"]).start();
    let items = fingerprints(200);
    crawl.push_to_list(&items[..100]);
    wait_until(SOON, "routed items", || crawl.waiting() == 0);
    let second = crawl.urlseen(&["route"]).output();
    assert_eq!(second.code(), Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("already run by crawl \"demo, router\""), "{}", second.stderr);
    let mut standby = crawl.urlseen(&["route", "--standby"]).start();
    standby.wait_for_line("standing by", SOON);
    first.signal(Signal::TERM);
    assert_eq!(first.output(SOON).code(), Some(0));
    crawl.push_to_list(&items[100..]);
    wait_until(SOON, "routed items", || crawl.waiting() == 0);
    standby.signal(Signal::TERM);
    assert_eq!(standby.output(SOON).code(), Some(0));
    assert_eq!(crawl.urlseen(&["run", "--drain"]).output().code(), Some(0));
    check_sinks(&crawl, &items);
}

#[test]
fn a_dead_partition_is_named_and_the_others_go_on_until_the_bound() {
    /// List in a slot of the second node.
    const QUEUE: &str = "{c}:queue";
    let cluster = Cluster::start();
    let port = free_port();
    let (nodes, items) = (&cluster.nodes, fingerprints(1000));
    let mut list = nodes[1].server.connection();
    let node_of = |number| {
        let slot = nodes[0].server.cli(&["cluster", "keyslot", &key(LIST, number)]);
        [5461, 10_923].partition_point(|&first| first <= slot.parse::<u32>().unwrap())
    };
    // A router whose connection times out pushes items again.
    let distinct = |&number: &usize| {
        let mut connection = nodes[node_of(number)].server.connection();
        connection.lrange::<_, HashSet<String>>(key(LIST, number), 0, -1).unwrap().len()
    };
    let mut router = urlseen(["route", "--set", "partitions.count=4", "--json", "--list", QUEUE])
        .env("URLSEEN_REDIS__URL", cluster.url(&[1]))
        .arg("--listen")
        .arg(format!("127.0.0.1:{port}"))
        .env("URLSEEN_SOURCE__BATCH", "100")
        .start();
    router.wait_for_line("the admin endpoint", SOON);
    wait_until(SOON, "a ready router", || get(&port, "/readyz") == "ok\n");
    for node in nodes {
        // The cluster keeps its state while a node is away. A node in a cluster that is down takes
        // no writes, and the router would push items again.
        node.order("config set cluster-require-full-coverage no");
        node.order("config set cluster-node-timeout 3600000");
    }
    let (dead, alive): (Vec<_>, Vec<_>) = (0..4).partition(|&number| node_of(number) == 2);
    nodes[2].server.pause();
    let count = |items: &[String], number| {
        items.iter().filter(|it| super::partition_of(it) == number).count()
    };
    // Items that arrive later pass too, however many batches wait for the dead partition.
    for end in (25..=items.len()).step_by(25) {
        list.rpush::<_, _, ()>(QUEUE, &items[end - 25..end]).unwrap();
        for number in &alive {
            let expected = count(&items[..end], *number);
            wait_until(SOON, "the other partitions", || distinct(number) == expected);
        }
    }
    let here = |number| count(&items, number);
    let metrics = get(&port, "/metrics");
    assert!(!dead.is_empty());
    for &number in &dead {
        let metric = "urlseen_route_waiting_items";
        let labels = format!("crawl=\"demo\",partition=\"{number}\"");
        let waiting = format!("{metric}{{{labels}}} {}", here(number));
        assert!(metrics.contains(&waiting), "{metrics}");
    }
    nodes[2].server.resume();
    for number in dead {
        wait_until(SOON, "the last partition", || distinct(&number) == here(number));
    }
    router.signal(Signal::TERM);
    let ended = router.output(SOON);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let summary: Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!(summary["routed"], 1000);
}
