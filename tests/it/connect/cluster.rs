//! Crawls and commands with the keys of a Redis Cluster.

use std::collections::BTreeSet;
use std::ops::Range;

use redis::Commands;

use super::tls::{authority, certificate};
use crate::util::binary::{Daemon, Run, urlseen};
use crate::util::redis::{RedisServer, connect, free_port};
use crate::util::wait::{SOON, wait_until};

/// Settings of a crawl whose keys are in one slot.
const KEYS: [&str; 4] = [
    "source.key={demo}:discovered",
    "sink.key={demo}:unseen",
    "rejects.key={demo}:rejected",
    "forget.key={demo}:forget",
];

pub(super) const SOURCE: &str = "{demo}:discovered";
const PROCESSING: &str = "urlseen:{demo}:discovered:processing";
const FORGETTING: &str = "urlseen:{demo}:discovered:forgetting";
const SINK: &str = "{demo}:unseen";

/// Slot in which the keys of the crawl are.
pub(super) const SLOT: u16 = 903;

/// Cluster of three primaries. The first one has the slot of the crawl.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
}

/// Server of a cluster, with its ports.
pub(crate) struct Node {
    pub(crate) server: RedisServer,
    pub(super) port: String,
    bus: String,
}

impl Node {
    pub(super) fn start() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let bus = free_port();
        let timeout = ["--cluster-node-timeout", "1000", "--cluster-port", &bus];
        let cluster = [&["--cluster-enabled", "yes"][..], &timeout, arguments].concat();
        let (server, port) = RedisServer::start_at_port(&cluster);
        Self { server, port, bus }
    }

    /// Gives all slots to a node, which then is a cluster of its own.
    fn alone(self) -> Cluster {
        self.order("cluster addslotsrange 0 16383");
        let cluster = Cluster { nodes: vec![self] };
        cluster.wait_for_nodes(1);
        cluster
    }

    /// Runs a command, and checks that its answer is `OK`.
    pub(crate) fn order(&self, command: &str) {
        let words: Vec<_> = command.split(' ').collect();
        assert_eq!(self.server.cli(&words), "OK", "{command}");
    }

    pub(crate) fn id(&self) -> String {
        self.server.cli(&["cluster", "myid"])
    }

    pub(super) fn meet(&self, other: &Self) {
        self.order(&format!("cluster meet 127.0.0.1 {} {}", other.port, other.bus));
    }
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let nodes: Vec<_> = (0..3).map(|_| Node::start()).collect();
        for (node, slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
            node.order(&format!("cluster addslotsrange {slots}"));
            node.meet(&nodes[0]);
        }
        let cluster = Self { nodes };
        cluster.wait_for_nodes(3);
        let slot = cluster.nodes[0].server.cli(&["cluster", "keyslot", SOURCE]);
        assert_eq!(slot, SLOT.to_string());
        cluster
    }

    /// Waits until each node knows `count` nodes, and serves its slots.
    pub(super) fn wait_for_nodes(&self, count: usize) {
        for node in &self.nodes {
            wait_until(SOON, "a complete cluster", || {
                let info = node.server.cli(&["cluster", "info"]);
                let count = format!("cluster_known_nodes:{count}");
                info.contains("cluster_state:ok") && info.contains(&count)
            });
        }
    }

    /// Returns the URL with some of the nodes.
    pub(crate) fn url(&self, nodes: &[usize]) -> String {
        let nodes: Vec<_> =
            nodes.iter().map(|&node| format!("127.0.0.1:{}", self.nodes[node].port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Prepares a command with the keys of the crawl.
    pub(super) fn urlseen(&self, nodes: &[usize], arguments: &[&str]) -> Run {
        let set = KEYS.iter().flat_map(|&key| ["--set", key]);
        urlseen(arguments.iter().copied().chain(set)).env("URLSEEN_REDIS__URL", self.url(nodes))
    }

    /// Starts a daemon with small batches, which knows `nodes`.
    pub(super) fn daemon(&self, nodes: &[usize]) -> Daemon {
        let arguments = ["run", "--set", "source.batch=20", "--set", "log.format=text"];
        let daemon = self.urlseen(nodes, &arguments).env("URLSEEN_FILTER__CAPACITY", "200_000");
        // The log then has all warnings that repeat.
        let daemon = daemon.env("URLSEEN_LOG__LEVEL", "debug");
        let mut daemon = daemon.env("URLSEEN_FILTER__ERROR_RATE", "1e-12").start();
        daemon.wait_for_line("this daemon has taken the lease", SOON);
        daemon
    }
}

impl Node {
    /// Pushes items, and waits until `replicas` have them.
    pub(super) fn push(&self, items: &[String], replicas: usize) {
        let mut connection = self.server.connection();
        for items in items.chunks(10_000) {
            connection.rpush::<_, _, ()>(SOURCE, items).unwrap();
        }
        let reached: usize =
            redis::cmd("WAIT").arg(replicas).arg(20_000).query(&mut connection).unwrap();
        assert!(reached >= replicas);
    }

    /// Waits until the sink has this many items.
    pub(super) fn wait_for_sink(&self, length: usize) {
        let mut connection = self.server.connection();
        wait_until(SOON, "items in the sink", || {
            connection.llen::<_, usize>(SINK).unwrap() >= length
        });
    }

    /// Waits until the crawl has no items left, and ends its daemon. Checks that the sink has each
    /// of the items once.
    pub(super) fn check(&self, daemon: Daemon, items: Range<usize>) {
        let mut connection = self.server.connection();
        let wanted: BTreeSet<String> = self::items(items).into_iter().collect();
        self.wait_for_sink(wanted.len());
        wait_until(SOON, "empty lists", || {
            [SOURCE, PROCESSING].iter().all(|list| connection.llen::<_, usize>(list).unwrap() == 0)
        });
        daemon.signal(rustix::process::Signal::TERM);
        let ended = daemon.output(SOON);
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        let mut found: Vec<String> = connection.lrange(SINK, 0, -1).unwrap();
        found.sort();
        assert!(found.iter().eq(&wanted), "{} of {}: {}", found.len(), wanted.len(), ended.stderr);
    }
}

/// Makes items, of which every third one is a repetition.
pub(super) fn items(numbers: Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("https://example.com/{}", number - number % 3 / 2)).collect()
}

#[test]
fn a_crawl_and_its_commands_find_the_node_of_each_key() {
    let cluster = Cluster::start();
    let [first, second, third] = &cluster.nodes[..] else { panic!("three nodes") };
    first.push(&items(0..3000), 0);
    first.push(&["no URL".to_owned()], 0);
    // None of these nodes has the slot.
    let daemon = cluster.daemon(&[2, 1]);
    first.wait_for_sink(2000);
    let folder = tempfile::TempDir::new().unwrap();
    let run = |arguments: &[&str]| {
        let ended = cluster.urlseen(&[1, 2], arguments).dir(&folder).output();
        assert_eq!(ended.code(), Some(0), "{arguments:?}: {}", ended.stderr);
        ended.text().to_owned() + &ended.stderr
    };
    assert!(run(&["rejects", "list"]).contains("no URL"));
    let one = format!("redis://127.0.0.1:{}", second.port);
    let listed = cluster.urlseen(&[], &["rejects", "list"]).env("URLSEEN_REDIS__URL", one).output();
    let sentence = format!("slot {SLOT} of the Redis Cluster is at 127.0.0.1:{}", first.port);
    assert!(listed.stderr.contains(&sentence), "{}", listed.stderr);
    assert!(run(&["held", "list"]).contains("no consumer"));
    assert!(run(&["forget", "https://example.com/0"]).contains("1 item"));
    let mut connection = first.server.connection();
    wait_until(SOON, "forgotten items", || {
        ["{demo}:forget", FORGETTING]
            .iter()
            .all(|list| !connection.exists::<_, bool>(list).unwrap())
    });
    first.push(&["https://example.com/0".to_owned()], 0);
    first.wait_for_sink(2001);
    let last: String = connection.rpop(SINK, None).unwrap();
    assert_eq!(last, "https://example.com/0");
    first.check(daemon, 0..3000);

    // These keys are in slots of other nodes.
    let places = [(second, "{c}:seen"), (third, "{a}:seen")];
    for (node, key) in places {
        let member = format!("{:040x}", key.len());
        node.server.connection().sadd::<_, _, ()>(key, member).unwrap();
    }
    let replayed = run(&["replay", "--key", "{a}:seen", "--key", "{c}:seen", "--key", SINK]);
    assert!(replayed.contains("2,002") || replayed.contains("2002"), "{replayed}");
    let imported = run(&["import", "--redis-set", "{c}:seen", "--algorithm", "scrapy"]);
    assert!(imported.contains("1 "), "{imported}");
}

#[test]
fn a_cluster_without_a_tag_and_a_single_server_are_refused_with_the_remedy() {
    let node = Node::start();
    let url = format!("redis+cluster://127.0.0.1:{}", node.port);
    let refused = |url: &str, keys: &[&str], status| {
        let set = keys.iter().flat_map(|&key| ["--set", key]);
        let ended = urlseen(["run"].into_iter().chain(set)).env("URLSEEN_REDIS__URL", url).output();
        assert_eq!(ended.code(), Some(status), "{}", ended.stderr);
        ended.stderr
    };
    let divided = format!(
        "environment URLSEEN_REDIS__URL: redis.url is \"{url}\", a Redis Cluster, and the keys of \
         the crawl are in different slots there: source.key = \"demo:discovered\", sink.key = \
         \"demo:unseen\", rejects.key = \"demo:rejected\", forget.key = \"demo:forget\"; give all \
         of them the same text in braces, as in \"{{demo}}:discovered\" and \"{{demo}}:unseen\""
    );
    let said = refused(&url, &[], 2);
    assert!(said.contains(&divided), "{said}");
    let said = refused(&format!("{url}/1"), &KEYS, 2);
    assert!(said.contains("a Redis Cluster has only the database 0; leave"), "{said}");

    let (_single, port) = RedisServer::start_at_port(&[]);
    let said = refused(&format!("redis+cluster://127.0.0.1:{port}"), &KEYS, 3);
    assert!(said.contains("this Redis is a single server (cluster-enabled no), and"), "{said}");
}

#[test]
fn a_claim_moves_a_bounded_number_of_items_in_the_order_of_the_source() {
    const MOST: usize = 20_000;
    let cluster = Node::start().alone();
    let node = &cluster.nodes[0];
    let items: Vec<String> = (0..MOST + 50).map(|number| number.to_string()).collect();
    let urls: Vec<String> = items.iter().map(|it| format!("https://example.com/{it}")).collect();
    for (end, right) in [("left", "+sort"), ("right", "+sort"), ("right", "-sort")] {
        node.server.cli(&["flushall"]);
        node.server.cli(&["acl", "setuser", "default", right]);
        node.push(&urls, 0);
        node.server.cli(&["config", "resetstat"]);
        let ran = cluster
            .urlseen(&[0], &["run", "--drain"])
            .env("URLSEEN_SOURCE__TAKE_FROM", end)
            .env("URLSEEN_FILTER__CAPACITY", "1e5")
            .output();
        assert_eq!(ran.code(), Some(0), "{end}: {}", ran.stderr);
        let found: Vec<String> = node.server.connection().lrange(SINK, 0, -1).unwrap();
        let in_order = match end {
            "left" => found.iter().eq(&urls),
            _ => found.iter().eq(urls.iter().rev()),
        };
        assert!(in_order, "{end}, {right}");
        // The last claim renames the list.
        let moves = match right {
            "+sort" => "cmdstat_sort:calls=1,".to_owned(),
            _ => format!("cmdstat_lmove:calls={MOST},"),
        };
        let facts = node.server.cli(&["info", "commandstats"]);
        assert!(facts.contains(&moves), "{end}, {right}: {facts}");
    }
}

#[test]
fn passwords_and_certificates_are_the_same_for_all_nodes() {
    let folder = tempfile::TempDir::new().unwrap();
    authority(folder.path(), "ours");
    certificate(folder.path(), "redis", "ours", "20991231235959Z");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let files = [file("redis.pem"), file("redis.key"), file("ours.pem")];
    let names = ["--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file"];
    let ports = [free_port(), free_port()];
    let nodes = ports.each_ref().map(|port| {
        // The certificate is for this name.
        let name = "--cluster-preferred-endpoint-type hostname --cluster-announce-hostname \
                    localhost --tls-cluster yes --tls-auth-clients no --tls-port";
        let mut arguments: Vec<&str> = name.split_whitespace().chain([port.as_str()]).collect();
        arguments.extend(names.iter().zip(&files).flat_map(|(name, file)| [name, file.as_str()]));
        Node { port: port.clone(), ..Node::with(&arguments) }
    });
    nodes[0].order("cluster addslotsrange 0 8000");
    nodes[1].order("cluster addslotsrange 8001 16383");
    nodes[1].meet(&nodes[0]);
    let cluster = Cluster { nodes: nodes.into() };
    cluster.wait_for_nodes(2);
    for node in &cluster.nodes {
        wait_until(SOON, "both names", || {
            node.server.cli(&["cluster", "nodes"]).matches(",localhost").count() == 2
        });
        node.order("acl setuser ann on >secret ~{demo}:* ~urlseen:{demo}:* +@all");
        node.order("acl setuser default off");
    }
    let first = &cluster.nodes[0];
    let mut ann = connect(&first.server.url_as("ann", "secret")).unwrap();
    ann.rpush::<_, _, ()>(SOURCE, "https://example.com/").unwrap();
    let url = format!("rediss+cluster://ann@localhost:{}", cluster.nodes[1].port);
    let run = cluster.urlseen(&[1], &["run", "--drain"]).env("URLSEEN_REDIS__URL", url);
    let run = run.env("URLSEEN_REDIS__TLS_CA", file("ours.pem"));
    let ran = run.env("URLSEEN_REDIS_PASSWORD", "secret").output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(ann.llen::<_, usize>(SINK).unwrap(), 1);
}
