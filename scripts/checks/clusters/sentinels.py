"""Primary with two replicas, and three Sentinels that replace it."""

from collections import Counter

from .progress import say, until
from .server import DURABLE, REPLICATED, Server, runs

NAME = "mymaster"


class Sentinels:
    """Three servers. Each of their hosts also has a Sentinel."""

    name = "group of three Sentinels"
    #: With a smaller number, Redis could promote a replica that lacks a write.
    wait_replicas = 2

    def __init__(self, folder, network, minimum):
        self.servers, self.sentinels = [], []
        for number in range(3):
            host = network.host()
            command = ["redis-server", *DURABLE, *REPLICATED, "--min-replicas-to-write", minimum]
            name = f"server{number}"
            self.servers.append(Server(folder / name, host, host.port(6379), command))
            first, name = self.servers[0], f"sentinel{number}"
            command = ["redis-server", folder / name / "sentinel.conf", "--sentinel"]
            self.sentinels.append(Server(folder / name, host, host.port(26379), command))
            (folder / name / "sentinel.conf").write_text(
                f"sentinel monitor {NAME} {first.host.address} {first.port} 2\n"
                f"sentinel down-after-milliseconds {NAME} 1000\n"
                f"sentinel failover-timeout {NAME} 3000\n"
            )
        self.url = f"redis+sentinel://{','.join(it.node for it in self.sentinels)}/{NAME}"

    def __enter__(self):
        first, *others = self.servers
        first.start()
        for server in others:
            server.start("--replicaof", first.host.address, first.port)
        for sentinel in self.sentinels:
            sentinel.start()
        self.wait()
        say(f"three servers are a {self.name}")
        return self

    def wait(self):
        """Waits until each replica has a link to the primary, and all Sentinels agree."""
        until("complete group", self.is_complete)

    def is_complete(self):
        if not (primary := self.primary_of("")):
            return False
        info = primary.facts("replication")
        states = [info.get(f"slave{number}", {}).get("state") for number in range(2)]
        if info["role"] != "master" or states != ["online", "online"]:
            return False
        facts = [self.facts(sentinel) for sentinel in self.sentinels]
        expected = {"flags": "master", "num-slaves": "2", "num-other-sentinels": "2"}
        return all(expected.items() <= it.items() for it in facts) and (
            {(it["ip"], int(it["port"])) for it in facts} == {(primary.host.address, primary.port)}
        )

    @staticmethod
    def facts(sentinel):
        return sentinel.run("SENTINEL", "MASTER", NAME)

    def named(self):
        """Returns the server that at least two Sentinels name as the primary."""
        named = Counter()
        for sentinel in filter(runs, self.sentinels):
            address, port = sentinel.run("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
            named[f"{address}:{port}"] += 1
        node, votes = named.most_common(1)[0]
        return next(it for it in self.servers if it.node == node) if votes >= 2 else None

    def primary_of(self, _key):
        """Returns the server that the Sentinels name, if it is a primary."""
        server = self.named()
        is_primary = server and runs(server) and server.facts("replication")["role"] == "master"
        return server if is_primary else None

    def primaries(self):
        return [self.primary_of("")]

    def replicas_of(self, primary):
        return [server for server in self.servers if server is not primary and runs(server)]

    def rejoin(self, server):
        """Starts a killed server again, as a replica if another one has taken over."""
        primary = until("primary", self.named)
        words = ("--replicaof", primary.host.address, primary.port)
        server.start(*(words if primary is not server else ()))

    def order_failover(self, _primary):
        """Tells a Sentinel to let a replica take over. It can refuse this at first."""
        until("accepted failover", lambda: self.sentinels[0].run("SENTINEL", "FAILOVER", NAME))

    def __exit__(self, *_):
        for server in (*self.sentinels, *self.servers):
            server.kill()
