"""Redis Cluster of a crawl: three primaries, each with a replica."""

import sys
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path

import redis
from clusters import progress
from clusters.cluster import Cluster, nodes
from clusters.network import Loopback
from clusters.server import runs

from .processes import Trouble


class RedisCluster:
    """Context with the servers of a Redis Cluster, and with a client for all of them."""

    #: Number of replicas for which the daemons wait.
    replicas = Cluster.wait_replicas

    def __init__(self, folder):
        self._cluster = Cluster(Path(folder) / "cluster", Loopback(), 0)
        self.url = self._cluster.url

    def __enter__(self):
        with ExitStack() as stack:
            # Without a complete cluster, the servers end, too.
            stack.push(self._cluster.__exit__)
            with told():
                self._cluster.__enter__()
            for server in self._cluster.servers:
                self._set_up(server)
            first = self._cluster.servers[0]
            self.client = redis.RedisCluster(first.host.address, first.port)
            self._servers = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._servers.close()

    def check(self):
        """Raises an error if a server does not run."""
        for server in self._cluster.servers:
            if server.process and server.process.poll() is not None:
                log = (server.folder / "log").read_text()[-2000:]
                raise Trouble(f"the server {server.node} has ended:\n{log}")

    def kill_primary(self, draw):
        """Kills a primary, waits for its successor, and starts it again. Returns its name."""
        cluster = self._cluster
        primaries = cluster.primaries()
        victim = primaries[int(draw * len(primaries))]
        slot = int(nodes(victim)[0].slots[0].partition("-")[0])
        with told():
            victim.kill()
            progress.until("new primary", lambda: self._is_served(slot))
            cluster.rejoin(victim)
            self._set_up(victim)
            cluster.wait()
        return victim.node

    def names_of_clients(self):
        """Returns the names of all connections."""
        servers = filter(runs, self._cluster.servers)
        return {each["name"] for server in servers for each in server.client.client_list()}

    def _set_up(self, server):
        """Makes a server answer while slots of other servers have no primary."""
        server.run("CONFIG SET", "cluster-require-full-coverage", "no")

    def _is_served(self, slot):
        return any(node.serves(slot) for _, node in self._cluster.own_nodes())

    def used(self):
        return sum(it.facts("memory")["used_memory"] for it in self._cluster.primaries())

    def used_by(self, keys):
        """Returns the bytes of memory of some keys."""
        return sum(self.client.memory_usage(key, samples=0) or 0 for key in keys)


@contextmanager
def told():
    """Context in which all progress goes to standard error, because standard output is a table."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except progress.Trouble as trouble:
        raise Trouble(str(trouble)) from None
