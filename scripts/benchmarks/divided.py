"""Crawl that is divided into partitions, in a Redis Cluster; its daemon and its router."""

import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from redis.crc import key_slot

from . import process, programs
from .cluster import SLOTS, free_port
from .server import wait_until

SOURCE, SINK = "demo:discovered", "demo:unseen"
CONFIG = """\
[redis]
url = "{url}"
[source]
key = "{SOURCE}{end}"
[sink]
key = "{SINK}{end}"
[rejects]
key = "demo:rejected{end}"
[forget]
key = "demo:forget{end}"
[filter]
kind = "native"
capacity = {capacity}
error_rate = 1e-8
[storage]
dir = "storage"
[log]
progress = "0s"
[partitions]
count = {partitions}
"""

# Option for the address of the admin endpoint, by command.
LISTEN = {"run": "--set=admin.listen=127.0.0.1:{}", "route": "--listen=127.0.0.1:{}"}


class Divided:
    """Crawl in a cluster, which can hold a stock of the items of each partition."""

    def __init__(self, cluster, partitions, stock):
        self.cluster, self.partitions, self.stock = cluster, partitions, stock
        # A crawl with one partition has no tags, and its keys need a common hash tag.
        self.end = "" if partitions > 1 else ":{demo}"
        tags = [tag(number, partitions) for number in range(partitions)]
        self.ends = [f":{{{it}}}" for it in tags] if partitions > 1 else [self.end]

    def load(self):
        """Pushes each item of the stock to the list of its partition. Tab items begin with their
        fingerprint."""
        for chunk in self.stock.chunks():
            groups = {}
            for item in chunk:
                number = int(item[:2], 16) * self.partitions // 256
                groups.setdefault(number, []).append(item)
            for number, found in groups.items():
                key = self.stored(self.ends[number])
                self.cluster.node_of(key).client.rpush(key, *found)

    def stored(self, end):
        return f"stock, {self.partitions}{end}"

    def run(self, capacity):
        """Filters a copy of the stock with a new filter.

        Returns the seconds, the processor nanoseconds of the primaries, and those of each thread of
        the daemon.
        """
        self.clear()
        begins = {}
        for end in self.ends:
            key = self.stored(end)
            self.cluster.node_of(key).client.copy(key, f"waiting{end}")
            begins[SOURCE + end] = f"waiting{end}"
        claimed = [f"urlseen:{SOURCE}{end}:processing" for end in self.ends]
        with Program(self, "run", capacity) as daemon:
            self.wait_for_blocked(self.partitions)
            found = self.measure(daemon, begins, [*begins, *claimed])
        sinks = [SINK + end for end in self.ends]
        came = sum(self.cluster.node_of(sink).client.llen(sink) for sink in sinks)
        self.check(came, self.stock.distinct)
        return found

    def route(self):
        """Moves a copy of the list of all items to the partitions. Returns the same as `run`."""
        self.clear()
        waiting, processing = f"{{{SOURCE}}}:waiting", f"urlseen:{{{SOURCE}}}:processing"
        for chunk in self.stock.chunks():
            self.cluster.node_of(waiting).client.rpush(waiting, *chunk)
        with Program(self, "route", self.stock.count) as router:
            self.wait_for_blocked(1)
            found = self.measure(router, {SOURCE: waiting}, [SOURCE, processing])
        sources = [SOURCE + end for end in self.ends]
        came = sum(self.cluster.node_of(key).client.llen(key) for key in sources)
        self.check(came, self.stock.count)
        return found

    def measure(self, program, begins, keys):
        served, used = self.cluster.processor_time(), program.processor_time()
        seconds = self.cluster.time_until_gone(begins, keys, program.check)
        served = self.cluster.processor_time() - served
        used = program.processor_time() - used
        return seconds, served, used

    @staticmethod
    def check(came, due):
        """Checks a number of items. The error rate permits very few losses."""
        if came > due or due - came > 1 + due * 1e-6:
            raise RuntimeError(f"{came} items arrived instead of {due}")

    def clear(self):
        """Deletes all keys except the stocks."""
        for node in self.cluster.nodes:
            keys = [key for key in node.client.keys() if not key.startswith(b"stock, ")]
            # A command for several keys would need them in the same slot.
            for key in keys:
                node.client.delete(key)

    def wait_for_blocked(self, count):
        """Waits until `count` clients wait for items."""

        def blocked():
            nodes = self.cluster.nodes
            return sum(node.client.info("clients")["blocked_clients"] for node in nodes) >= count

        wait_until(blocked, "a partition does not wait for items")


class Program:
    """Context with a running `urlseen run` or `urlseen route`, which is ready."""

    def __init__(self, crawl, command, capacity):
        self.crawl, self.command, self.capacity = crawl, command, capacity

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="urlseen-bench-"))
        self.port = free_port()
        (self.folder / "config.toml").write_text(
            CONFIG.format(
                url=self.crawl.cluster.url, end=self.crawl.end, capacity=self.capacity,
                partitions=self.crawl.partitions, SOURCE=SOURCE, SINK=SINK,
            )
        )
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            command = [programs.URLSEEN, self.command, LISTEN[self.command].format(self.port)]
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        try:
            wait_until(self.is_ready, "urlseen is not ready", 120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self):
        self.check()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10).close()
        except (OSError, urllib.error.HTTPError):
            return False
        return True

    def check(self):
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace")
            raise RuntimeError(f"urlseen ended with status {self.process.returncode}:\n{said}")

    def processor_time(self):
        return process.processor_time(self.process.pid)


def tag(number, partitions):
    """Returns the hash tag of a partition by the rule in docs/reference/keys.md."""
    width, attempt = SLOTS // partitions, 0
    while key_slot(f"{number}.{attempt}".encode()) // width != number:
        attempt += 1
    return f"{number}.{attempt}"
