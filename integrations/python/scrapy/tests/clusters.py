"""Real clusters for the tests."""

from __future__ import annotations

from pathlib import Path

from redis import Redis

from servers import RedisServer, free_port, until

#: Settings of a spider, and of urlseen, for a crawl whose keys are in one slot.
SPIDER_KEYS = {"URLSEEN_SOURCE_KEY": "{%(spider)s}:discovered"}
DAEMON_KEYS = {
    "source.key": "{demo}:discovered",
    "sink.key": "{demo}:unseen",
    "rejects.key": "{demo}:rejected",
    "forget.key": "{demo}:forget",
}
#: Slot of these keys.
SLOT = 903


class ClusterServers:
    """Cluster of three primaries. One of the first two has the slot of the crawl.

    If a primary is away, the other nodes serve their slots nevertheless. With `replicas`, each
    primary has a replica, which takes over only when `take_over` tells it to.
    """

    def __init__(self, folder: Path, *, replicas: bool = False) -> None:
        self._started: list[RedisServer] = []
        #: Primaries.
        self.nodes: list[RedisServer] = []
        #: Replica of each primary.
        self.replicas: list[RedisServer] = []
        for number in range(3):
            node = self._start(folder / f"node-{number}")
            self.nodes.append(node)
            node.client.cluster("ADDSLOTSRANGE", 5462 * number, min(5462 * number + 5461, 16383))
        if replicas:
            self.replicas = [self._start(folder / f"replica-{number}") for number in range(3)]
        self.wait()
        for replica, node in zip(self.replicas, self.nodes):
            replica.client.execute_command("CLUSTER REPLICATE", _id(node))
        for number in range(len(self.replicas)):
            until(lambda number=number: self.is_copied(number), "replication")
        # The first of these nodes does not answer, and the others do not have the slot.
        ports = [free_port(), self.nodes[2].port, self.nodes[1].port]
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)
        self._source, self._target, _ = self.nodes

    @property
    def client(self) -> Redis:
        """Client of the node that has the slot."""
        return self._source.client

    def _start(self, folder: Path) -> RedisServer:
        folder.mkdir()
        bus = str(free_port())
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"]
        options += ["--cluster-require-full-coverage", "no", "--cluster-replica-no-failover", "yes"]
        options += ["--repl-diskless-sync-delay", "0"]
        node = RedisServer(folder, *options, "--cluster-port", bus)
        if self._started:
            meet = ("CLUSTER MEET", "127.0.0.1", node.port, bus)
            self._started[0].client.execute_command(*meet)
        self._started.append(node)
        return node

    def wait(self) -> None:
        """Waits until all nodes know that all of them are there."""
        until(self._is_complete, "a complete cluster")

    def _is_complete(self) -> bool:
        infos = [node.client.execute_command("CLUSTER INFO") for node in self._started]
        texts = [info if isinstance(info, dict) else _fields(info) for info in infos]
        return all(
            each["cluster_state"] == "ok" and each["cluster_known_nodes"] == str(len(infos))
            for each in texts
        )

    def is_copied(self, number: int) -> bool:
        """Returns `True` if the replica of a primary has all its writes."""
        copied = self.replicas[number].client.info("replication")
        written = self.nodes[number].client.info("replication")
        offset = written["master_repl_offset"]
        return copied.get("master_link_status") == "up" and copied["slave_repl_offset"] == offset

    def take_over(self, number: int) -> None:
        """Makes the replica of a primary take over its slots."""
        replica = self.replicas[number]
        self.nodes[number] = replica
        replica.client.execute_command("CLUSTER FAILOVER TAKEOVER")
        until(lambda: replica.client.role()[0] in (b"master", "master"), "the new primary")

    def begin_move(self) -> None:
        """Begins to move the slot of the crawl to another node."""
        _set_slot(self._target, "IMPORTING", _id(self._source))
        _set_slot(self._source, "MIGRATING", _id(self._target))

    def move_keys(self, most: int) -> int:
        """Moves some keys of the slot. Returns their number."""
        client = self._source.client
        keys = client.execute_command("CLUSTER GETKEYSINSLOT", SLOT, most)
        if keys:
            port = self._target.port
            client.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *keys)
        return len(keys)

    def end_move(self) -> None:
        """Moves the remaining keys, and ends the move."""
        while self.move_keys(10):
            pass
        self._source, self._target = self._target, self._source
        for node in (self._source, self._target, self.nodes[2]):
            _set_slot(node, "NODE", _id(self._source))

    def clear(self) -> None:
        for node in self.nodes:
            node.client.flushall()

    def close(self) -> None:
        for node in self._started:
            node.close()


def _set_slot(node: RedisServer, state: str, other: str) -> None:
    node.client.execute_command("CLUSTER SETSLOT", SLOT, state, other)


def _id(node: RedisServer) -> str:
    found = node.client.execute_command("CLUSTER MYID")
    return found.decode() if isinstance(found, bytes) else found


def _fields(info: bytes) -> dict[str, str]:
    return dict(line.split(":") for line in info.decode().split())
