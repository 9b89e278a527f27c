"""Primaries of a Redis Cluster, each a server on a port of loopback. They keep nothing on disk."""

import socket
import time
from contextlib import ExitStack

import redis

from . import process
from .server import POLL, Server, wait_until

SLOTS = 16_384


class Cluster:
    """Context with a running cluster, whose primaries have equal shares of the slots."""

    def __init__(self, primaries):
        self.primaries = primaries

    def __enter__(self):
        self.stack = ExitStack()
        with ExitStack() as starting:
            self.nodes = [starting.enter_context(Node()) for _ in range(self.primaries)]
            self.join()
            self.stack = starting.pop_all()
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        starts = [redis.cluster.ClusterNode("127.0.0.1", node.port) for node in self.nodes]
        self.client = redis.cluster.RedisCluster(startup_nodes=starts)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def join(self):
        """Gives each node its slots, and makes the nodes known to each other."""
        borders = [SLOTS * number // self.primaries for number in range(self.primaries + 1)]
        first = self.nodes[0]
        for node, begin, end in zip(self.nodes, borders, borders[1:]):
            node.client.cluster("ADDSLOTSRANGE", begin, end - 1)
            first.client.execute_command("CLUSTER MEET", "127.0.0.1", node.port, node.bus)
        wait_until(lambda: all(map(self.is_complete, self.nodes)), "the cluster is not complete")

    def is_complete(self, node):
        info = node.client.cluster("INFO")
        known = int(info["cluster_known_nodes"])
        return info["cluster_state"] == "ok" and known == self.primaries

    def node_of(self, key):
        """Returns the node that serves a key."""
        port = self.client.get_node_from_key(key).port
        return next(node for node in self.nodes if node.port == port)

    def processor_time(self):
        """Returns the processor nanoseconds of all primaries so far."""
        return sum(1e9 * process.cpu_seconds(node.process.pid) for node in self.nodes)

    def empty(self):
        """Deletes everything, and waits until its memory is free again."""
        for node in self.nodes:
            node.client.flushall()

    def time_until_gone(self, begins, keys, watch):
        """Renames keys and returns the seconds until all of `keys` are gone.

        `begins` has the old name of each key by its new name. The method looks at the keys many
        times a second. `watch` is called with each look.
        """
        asked = {}
        for key in keys:
            asked.setdefault(self.node_of(key), []).append(key)
        begun = time.perf_counter()
        for new, old in begins.items():
            self.node_of(new).client.rename(old, new)
        for node, found in asked.items():
            while node.count(found):
                watch()
                time.sleep(POLL)
        return time.perf_counter() - begun


class Node(Server):
    """Context with one server of a cluster."""

    def __init__(self):
        self.port, self.bus = free_port(), free_port()
        super().__init__(arguments=[
            "--port", str(self.port), "--bind", "127.0.0.1", "--cluster-enabled", "yes",
            "--cluster-port", str(self.bus),
        ])

    def count(self, keys):
        """Returns the number of these keys that exist. They may be in different slots."""
        pipe = self.client.pipeline(transaction=False)
        for key in keys:
            pipe.exists(key)
        return sum(pipe.execute())


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
