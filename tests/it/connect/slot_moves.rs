//! A crawl whose slot of a Redis Cluster is moved, and steps of failovers and moves.

use super::cluster::{Cluster, Node, SLOT, items};
use crate::util::wait::{SOON, wait_until};

/// Number of items that are pushed at once.
const HALF: usize = 3000;

/// Waits until a node is a primary, or a replica that has all data.
pub(crate) fn wait_for_role(node: &Node, role: &str) {
    wait_until(SOON, role, || {
        let info = node.server.cli(&["info", "replication"]);
        info.contains(&format!("role:{role}")) && !info.contains("master_link_status:down")
    });
}

/// Starts a cluster whose last node is a replica of the first one.
pub(crate) fn cluster_with_replica() -> Cluster {
    let mut cluster = Cluster::start();
    cluster.nodes.push(Node::start());
    let [first, .., replica] = &cluster.nodes[..] else { panic!("four nodes") };
    replica.meet(first);
    cluster.wait_for_nodes(4);
    wait_until(SOON, "a replica", || {
        let words = ["cluster", "replicate", &first.id()];
        let node = &replica.server;
        node.cli(&["cluster", "nodes"]).contains(words[2]) && node.cli(&words) == "OK"
    });
    wait_for_role(replica, "slave");
    for node in &cluster.nodes {
        wait_until(SOON, "a known replica", || {
            node.server.cli(&["cluster", "nodes"]).contains(&format!("slave {}", first.id()))
        });
    }
    cluster
}

/// Begins to move a slot from one node to another.
pub(crate) fn begin_move(slot: u16, from: &Node, to: &Node) {
    to.order(&format!("cluster setslot {slot} importing {}", from.id()));
    from.order(&format!("cluster setslot {slot} migrating {}", to.id()));
}

/// Moves the keys of a slot from one node to another, one by one. Then tells all nodes that the
/// slot has moved.
pub(crate) fn end_move(slot: u16, from: &Node, to: &Node, others: &[&Node]) {
    move_keys(slot, from, to);
    for node in [to, from].iter().chain(others) {
        node.order(&format!("cluster setslot {slot} node {}", to.id()));
    }
}

fn move_keys(slot: u16, from: &Node, to: &Node) {
    loop {
        let keys = from.server.cli(&["cluster", "getkeysinslot", &slot.to_string(), "1"]);
        if keys.is_empty() {
            return;
        }
        let migrate = ["migrate", "127.0.0.1", &to.port, "", "0", "5000", "keys"];
        from.server.cli(&[&migrate[..], &keys.lines().collect::<Vec<_>>()].concat());
    }
}

/// Returns the longest wait in a log, in milliseconds.
fn longest_wait(log: &str) -> u64 {
    let waits = log.lines().filter_map(|line| line.split_once("Trying again in "));
    waits.map(|(_, wait)| wait.trim_end_matches(" ms").parse().unwrap()).max().unwrap_or(0)
}

#[test]
fn a_crawl_waits_while_its_slot_is_moved_and_goes_on_at_the_new_node() {
    let cluster = Cluster::start();
    let [first, second, third] = &cluster.nodes[..] else { panic!("three nodes") };
    let mut daemon = cluster.daemon(&[0, 1, 2]);
    first.push(&items(0..HALF), 0);
    first.wait_for_sink(100);

    begin_move(SLOT, first, second);
    let sentence = format!(
        "slot {SLOT} of the Redis Cluster is being moved to 127.0.0.1:{}; wait for the end of the \
         move, or end an interrupted move with redis-cli --cluster fix. Trying again in",
        second.port
    );
    daemon.wait_for_line(&sentence, SOON);
    // The first wait is at most 50 ms.
    wait_until(SOON, "longer waits", || longest_wait(&daemon.stderr()) > 200);
    end_move(SLOT, first, second, &[third]);
    second.push(&items(HALF..2 * HALF), 0);
    second.check(daemon, 0..2 * HALF);
}
