"""Redis Cluster of three primaries, each with a replica."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from redis.crc import key_slot

from .progress import Trouble, say, until
from .server import DURABLE, REPLICATED, Server, runs

SIZE = 6
NODE_TIMEOUT_S = 1


@dataclass
class Node:
    """One line of CLUSTER NODES."""

    id: str
    flags: list
    primary: str
    epoch: int
    slots: tuple

    @classmethod
    def parse(cls, line):
        id, _, flags, primary, _, _, epoch, _, *slots = line.split()
        return cls(id, flags.split(","), primary, int(epoch), tuple(slots))

    def serves(self, slot):
        ranges = (it.split("-") for it in self.slots if not it.startswith("["))
        return "master" in self.flags and any(int(it[0]) <= slot <= int(it[-1]) for it in ranges)


def nodes(server):
    """Returns the nodes that a server knows. The first one is its own."""
    found = [Node.parse(it) for it in server.run("CLUSTER", "NODES").splitlines()]
    return sorted(found, key=lambda node: "myself" not in node.flags)


class Cluster:
    """Six servers of Redis, whose slots move key by key."""

    name = "Redis Cluster"
    #: Number of replicas that must have a write, so that no failover loses it.
    wait_replicas = 1

    def __init__(self, folder, network, minimum):
        self.servers = []
        for number in range(SIZE):
            host = network.host()
            command = [self.program(), "--cluster-enabled", "yes", "--cluster-port"]
            command += [host.port(16379), "--cluster-node-timeout", 1000 * NODE_TIMEOUT_S]
            command += ["--cluster-allow-replica-migration", "no", *DURABLE, *REPLICATED]
            command += ["--min-replicas-to-write", minimum]
            self.servers.append(
                Server(folder / f"node{number}", host, host.port(6379), command)
            )
        self.url = "redis+cluster://" + ",".join(server.node for server in self.servers)

    @staticmethod
    def program():
        return "redis-server"

    def __enter__(self):
        for server in self.servers:
            server.start()
        names = [server.node for server in self.servers]
        self.cli("create", *names, "--cluster-replicas", "1", "--cluster-yes")
        self.wait()
        say(f"{SIZE} servers are a {self.name}")
        return self

    def cli(self, *words):
        """Runs a command of redis-cli, and waits for its end."""
        command = ["redis-cli", "--cluster", *map(str, words)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise Trouble(f"{' '.join(command)}: {ran.stdout[-1000:]}{ran.stderr}")

    def wait(self):
        """Waits until all servers run, agree on the slots, and each primary has its replica."""
        until("complete cluster", self.is_complete)

    @staticmethod
    def settle():
        """Waits after a move of slots, until each server has heard from each other one.

        A late message of the new primary hides from its replica that the slot is claimed. If the
        replica takes over before the next message, the old primary takes the slot back when it
        returns, and all keys of the slot are deleted (redis/redis#12564). Each pair of servers
        exchanges a message within about one timeout.
        """
        time.sleep(2 * NODE_TIMEOUT_S)

    def is_complete(self):
        views = [nodes(server) for server in self.servers]
        agreed = {frozenset((node.id, node.slots) for node in view if node.slots) for view in views}
        failed = any("fail" in flag for view in views for node in view for flag in node.flags)
        if len(agreed) > 1 or failed or any(len(view) != SIZE for view in views):
            return False
        for server in self.servers:
            info = server.facts("replication")
            is_linked = info["master_link_status"] == "up" if info["role"] == "slave" else (
                info["connected_slaves"] == 1 and info["slave0"]["state"] == "online"
            )
            if not is_linked or not self.is_up(server):
                return False
        return True

    @staticmethod
    def is_up(server):
        return "cluster_state:ok" in server.run("CLUSTER", "INFO")

    def own_nodes(self):
        """Returns each server that runs, with what it knows about itself."""
        return [(server, nodes(server)[0]) for server in self.servers if runs(server)]

    def primary_of(self, key):
        """Returns the primary of a key. If several servers claim to be it, it is the newest one."""
        slot = key_slot(key.encode())
        found = [it for it in self.own_nodes() if it[1].serves(slot)]
        return max(found, key=lambda it: it[1].epoch)[0] if found else None

    def primaries(self):
        return [server for server, node in self.own_nodes() if node.slots]

    def replicas_of(self, primary):
        id = nodes(primary)[0].id
        return [server for server, node in self.own_nodes() if node.primary == id]

    def rejoin(self, server):
        """Starts a killed server again. It becomes a replica if another one has taken over."""
        server.start()

    def order_failover(self, primary):
        """Lets the replica of a primary take over."""
        self.replicas_of(primary)[0].run("CLUSTER FAILOVER")

    def begin_reshard(self, slots, draw):
        """Starts to move slots from the largest primary to another one."""
        source, target = self.ends(draw)
        command = ["redis-cli", "--cluster", "reshard", self.servers[0].node]
        command += ["--cluster-from", source[1].id, "--cluster-to", target[1].id]
        command += ["--cluster-slots", str(slots), "--cluster-yes"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def ends(self, draw):
        """Returns the primary with the most slots, and another one, each with its node."""
        found = [it for it in self.own_nodes() if it[1].slots]
        source = max(found, key=lambda it: sum(map(size, it[1].slots)))
        return source, draw.choice([it for it in found if it is not source])

    def move_slot(self, key, draw, pause):
        """Moves the slot of a key, key by key, with pauses. Returns the slot and the new primary."""
        slot, source = key_slot(key.encode()), self.primary_of(key)
        target = draw.choice([it for it in self.primaries() if it is not source])
        source_id, target_id = (nodes(server)[0].id for server in (source, target))
        target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while keys := source.run("CLUSTER", "GETKEYSINSLOT", slot, 1):
            words = ("MIGRATE", target.host.address, target.port, "", 0, 5000, "KEYS", *keys)
            source.run(*words)
            time.sleep(pause)
        for server in (target, source, *self.primaries()):
            server.run("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        return slot, target

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()


class ValkeyCluster(Cluster):
    """Six servers of Valkey 9, which can move slots atomically."""

    name = "cluster of Valkey"

    @staticmethod
    def program():
        return Path(sys.executable).with_name("valkey-server")

    def move_atomically(self, draw):
        """Moves slots in one atomic step. Returns the slots and the new primary."""
        source, target = self.ends(draw)
        first = max(source[1].slots, key=size).split("-")
        low = draw.randint(int(first[0]), int(first[-1]))
        high = min(low + 1500, int(first[-1]))
        order = ("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", low, high, "NODE", target[1].id)
        source[0].run(*order)
        until("move of the slots", lambda: nodes(target[0])[0].serves(low))
        return f"{low}-{high}", target[0]


def size(slots):
    """Counts the slots of a range as CLUSTER NODES shows it."""
    if slots.startswith("["):
        return 0
    first, _, last = slots.partition("-")
    return int(last or first) - int(first) + 1
