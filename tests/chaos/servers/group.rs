//! Group of Redis servers in which replicas take over: a Redis Cluster, or servers with Sentinels.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use redis::{Cmd, FromRedisValue, cmd};

use super::Servers;
use super::node::{Node, until, words};
use crate::process::{Process, SOON};

/// Time without an answer after which a server counts as down.
const NODE_TIMEOUT_MS: &str = "1000";

/// Time after a move of slots within which each server has heard from each other one. A late
/// message of the new primary hides from its replica that the slot is claimed. If the replica takes
/// over before the next message, the old primary takes the slot back when it returns, and all keys
/// of the slot are deleted.
const SETTLED: Duration = Duration::from_secs(2);

/// Redis writes to its file before it answers, so a killed server keeps what it acknowledged.
const OPTIONS: &str = "--appendonly yes --appendfsync no --auto-aof-rewrite-percentage 0 \
    --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --min-replicas-max-lag 2 \
    --protected-mode no";

/// Name of the primary in the configuration of the Sentinels.
const NAME: &str = "mymaster";

/// Port of the first server. It is below the ports that the kernel gives to clients.
const FIRST_PORT: u16 = 7000;

/// All servers of a round.
pub(super) struct Group {
    kind: Servers,
    address: String,
    folder: PathBuf,
    pub(super) nodes: Vec<Node>,
    sentinels: Vec<Node>,
}

impl Group {
    /// Starts all servers. They listen at a loopback address that no other program has. Without
    /// `least` replicas, a primary takes no writes.
    pub(super) fn start(kind: Servers, folder: &Path, least: u8) -> Result<Self> {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let address = format!("127.{}.{middle}.{low}", 64 + high);
        let mut options = format!("{OPTIONS} --min-replicas-to-write {least}");
        if kind == Servers::Cluster {
            options += " --cluster-enabled yes --cluster-allow-replica-migration no \
                --cluster-node-timeout ";
            options += NODE_TIMEOUT_MS;
        }
        let node = |number: u16, arguments: &str| {
            let folder = folder.join(format!("server-{number}"));
            Node::new(folder, &address, FIRST_PORT + number, arguments)
        };
        let (nodes, sentinels) = match kind {
            Servers::Cluster => {
                let bus = |it| format!("{options} --cluster-port {}", FIRST_PORT + 100 + it);
                ((0..6).map(|it| node(it, &bus(it))).collect(), Vec::new())
            }
            _ => (
                (0..3).map(|it| node(it, &options)).collect(),
                (3..6).map(|it| node(it, "sentinel.conf --sentinel")).collect(),
            ),
        };
        let group = Self { kind, address, folder: folder.to_owned(), nodes, sentinels };
        match kind {
            Servers::Cluster => group.begin_cluster()?,
            _ => group.begin_sentinels()?,
        }
        until("complete group", SOON, || group.is_complete())?;
        Ok(group)
    }

    fn begin_cluster(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.start(&[]))?;
        let servers: Vec<String> = self.nodes.iter().map(|it| self.place(it)).collect();
        let servers = servers.join(" ");
        self.cli(&format!("create {servers} --cluster-replicas 1 --cluster-yes"))
    }

    fn begin_sentinels(&self) -> Result<()> {
        let (primary, replicas) = self.nodes.split_first().context("there are servers")?;
        primary.start(&[])?;
        replicas.iter().try_for_each(|node| node.start(&self.replica_of(primary)))?;
        let settings = format!(
            "sentinel monitor {NAME} {} {} 2\n\
            sentinel down-after-milliseconds {NAME} {NODE_TIMEOUT_MS}\n\
            sentinel failover-timeout {NAME} 3000\n",
            self.address, primary.port
        );
        for sentinel in &self.sentinels {
            fs::create_dir_all(&sentinel.folder)?;
            fs::write(sentinel.folder.join("sentinel.conf"), &settings)?;
            sentinel.start(&[])?;
        }
        Ok(())
    }

    fn replica_of(&self, primary: &Node) -> Vec<String> {
        ["--replicaof", &self.address, &primary.port.to_string()].map(str::to_owned).to_vec()
    }

    fn place(&self, node: &Node) -> String {
        format!("{}:{}", self.address, node.port)
    }

    /// Returns the URL of the group for urlseen.
    pub(super) fn url(&self) -> String {
        let (kind, nodes, end) = match self.kind {
            Servers::Cluster => ("cluster", &self.nodes, String::new()),
            _ => ("sentinel", &self.sentinels, format!("/{NAME}")),
        };
        let places: Vec<String> = nodes.iter().map(|it| self.place(it)).collect();
        format!("redis+{kind}://{}{end}", places.join(","))
    }

    /// Returns the number of replicas that must have a write, so that no failover loses it.
    pub(super) fn replicas(&self) -> usize {
        if self.kind == Servers::Cluster { 1 } else { 2 }
    }

    /// Runs a command of `redis-cli --cluster`, and waits for its end.
    fn cli(&self, line: &str) -> Result<()> {
        let line = format!("--cluster {line}");
        let mut process = Process::start(Path::new("redis-cli"), line.split(' '), &self.folder)?;
        let status = process.wait(SOON)?;
        ensure!(status.success(), "redis-cli {line}: {}", process.said());
        Ok(())
    }

    /// Returns something if all servers run and agree, and each primary has its replicas.
    pub(super) fn is_complete(&self) -> Result<Option<()>> {
        let mut views = BTreeSet::new();
        for node in &self.nodes {
            let info = node.info()?;
            let is_linked = info.contains("master_link_status:up")
                || info.matches("state=online").count() == self.replicas();
            if !is_linked {
                return Ok(None);
            }
            if self.kind == Servers::Cluster {
                let (mut view, state) = (node.cluster()?, words("CLUSTER INFO"));
                let has_failed = view.iter().any(|it| it[2].contains("fail"));
                if has_failed || !node.run::<String>(&state)?.contains("cluster_state:ok") {
                    return Ok(None);
                }
                view.retain(|it| it.len() > 8);
                for it in &mut view {
                    it.drain(1..8);
                }
                view.sort();
                views.insert(format!("{view:?}"));
            }
        }
        for sentinel in &self.sentinels {
            let facts: HashMap<String, String> =
                sentinel.run(&words(&format!("SENTINEL MASTER {NAME}")))?;
            let known = ["flags", "num-slaves", "num-other-sentinels"].map(|it| facts[it].as_str());
            if known != ["master", "2", "2"] {
                return Ok(None);
            }
            views.insert(facts["port"].clone());
        }
        Ok((views.len() == 1 && self.primary_of("").is_ok()).then_some(()))
    }

    /// Returns the primary of a key. If several servers claim to be it, it is the newest one.
    pub(super) fn primary_of(&self, key: &str) -> Result<&Node> {
        if self.kind == Servers::Sentinel {
            let node = self.named()?;
            ensure!(node.info()?.contains("role:master"), "the named primary is a replica");
            return Ok(node);
        }
        let slot = self.slot(key)?;
        let mut found: Vec<(u64, &Node)> = Vec::new();
        for node in self.nodes.iter().filter(|it| it.runs()) {
            let own = node.own()?;
            if own[2].contains("master") && ranges(&own).any(|it| it.contains(&slot)) {
                found.push((own[6].parse()?, node));
            }
        }
        let newest = found.into_iter().max_by_key(|it| it.0);
        newest.map(|it| it.1).context("the key has no primary")
    }

    fn slot(&self, key: &str) -> Result<u16> {
        let node = self.nodes.iter().find(|it| it.runs()).context("no server runs")?;
        node.run(cmd("CLUSTER").arg("KEYSLOT").arg(key))
    }

    /// Returns the server that at least two Sentinels name as the primary.
    fn named(&self) -> Result<&Node> {
        let mut named = Vec::new();
        for sentinel in &self.sentinels {
            let command = words(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"));
            let (_, port): (String, u16) = sentinel.run(&command)?;
            named.push(port);
        }
        let votes = |node: &&Node| named.iter().filter(|port| **port == node.port).count();
        self.nodes.iter().find(|it| votes(it) >= 2).context("the Sentinels name no primary")
    }

    /// Returns a replica of a primary.
    pub(super) fn replica(&self, primary: &Node) -> Result<&Node> {
        let end = format!("master_port:{}\r", primary.port);
        let is_replica = |node: &&Node| node.info().is_ok_and(|info| info.contains(&end));
        self.nodes.iter().find(is_replica).context("the primary has no replica")
    }

    /// Runs a command on the primary of a key.
    pub(super) fn ask<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> Result<T> {
        self.primary_of(key)?.run(command)
    }

    /// Starts a killed server again. It becomes a replica if another one has taken over.
    pub(super) fn rejoin(&self, node: &Node) -> Result<()> {
        if self.kind == Servers::Cluster {
            return node.start(&[]);
        }
        let primary = until("named primary", SOON, || self.named().map(Some))?;
        node.start(&if primary.port == node.port { Vec::new() } else { self.replica_of(primary) })
    }

    /// Moves slots from the primary of a key to another one, by redis-cli.
    pub(super) fn reshard(&self, key: &str, random: &mut Rng) -> Result<()> {
        let (source, target) = self.ends(key, random)?;
        let (place, count) = (self.place(&self.nodes[0]), random.u16(300..1500));
        let (from, to) = (&source.own()?[0], &target.own()?[0]);
        self.cli(&format!(
            "reshard {place} --cluster-from {from} --cluster-to {to} --cluster-slots {count} \
            --cluster-yes"
        ))?;
        sleep(SETTLED);
        Ok(())
    }

    /// Returns the primary of a key, and another primary.
    fn ends(&self, key: &str, random: &mut Rng) -> Result<(&Node, &Node)> {
        let source = self.primary_of(key)?;
        let mut others = Vec::new();
        for node in self.nodes.iter().filter(|it| it.port != source.port) {
            if node.own()?.len() > 8 {
                others.push(node);
            }
        }
        Ok((source, others[random.usize(0..others.len())]))
    }

    /// Moves the slot of a key to another primary, key by key, with pauses between the first keys.
    pub(super) fn move_slot(&self, key: &str, random: &mut Rng) -> Result<()> {
        let (source, target) = self.ends(key, random)?;
        let slot = self.slot(key)?;
        let mut pauses = vec![Duration::from_millis(random.u64(0..300)); 8];
        let (from, to) = (&source.own()?[0], &target.own()?[0]);
        let set = |node: &Node, state: &str, id: &str| {
            node.run::<()>(&words(&format!("CLUSTER SETSLOT {slot} {state} {id}")))
        };
        set(target, "IMPORTING", from)?;
        set(source, "MIGRATING", to)?;
        let next = words(&format!("CLUSTER GETKEYSINSLOT {slot} 1"));
        while let Some(key) = source.run::<Vec<String>>(&next)?.first() {
            let mut order = cmd("MIGRATE");
            order.arg(&self.address).arg(target.port).arg("").arg(0).arg(5000).arg("KEYS");
            source.run::<()>(order.arg(key))?;
            sleep(pauses.pop().unwrap_or_default());
        }
        for node in [target, source].into_iter().chain(&self.nodes) {
            if node.info()?.contains("role:master") {
                set(node, "NODE", to)?;
            }
        }
        ensure!(self.primary_of(key)?.port == target.port, "slot {slot} has not moved");
        sleep(SETTLED);
        Ok(())
    }
}

/// Returns the ranges of slots that a node has, without those that are on the move.
fn ranges(node: &[String]) -> impl Iterator<Item = RangeInclusive<u16>> {
    node.iter().skip(8).filter(|it| !it.starts_with('[')).filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}
