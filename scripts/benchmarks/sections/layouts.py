"""Filters in Redis of each kind, beside the projects with the same layout."""

import math
import sys
import tempfile
import time

import redis

from .. import items, process
from ..daemon import PROCESSING, SINK, SOURCE, Shared
from ..items import TAB, URL
from ..line import missing
from ..measured import STOCK, Measured
from ..peers import driver, loops
from ..peers.loops import FILTER
from ..peers.size import CAPACITY, ERROR_RATE
from ..server import Server

UNSEEN = (30, 5)
# Number of items for a peer, more than the slowest peer can process in its time.
PEER_ITEMS = 100_000
SCRIPT = b"EVALSHA"
# Commands that read a filter, and commands that write to a filter.
READS, WRITES = ("bitfield_ro", "getrange", "smismember"), ("bitfield", "setrange", "sadd")


def layouts(settings):
    """Returns the kinds of filters, each with its settings, its kind of items and its peers."""
    sized = {"capacity": settings.capacity if settings.short else CAPACITY, "error_rate": ERROR_RATE}
    bits = {"bit": 30, "hash_number": 6}
    pyrebloom = f"pyrebloom:{sized['capacity']}:{sized['error_rate']}"
    batched = "pyreBloom's formulas, SETBIT pipelined"
    note = "precomputed fingerprints; a SETBIT for each hash; its own package cannot be installed"
    return [
        ("native", sized, TAB, []),
        ("imooc", sized, TAB, [loops.Imooc]),
        ("pyrebloom", sized, TAB, [lambda: PyreBloom(pyrebloom, batched, note)]),
        ("scrapy-redis-bloomfilter", bits, URL, [loops.ScrapyRedisBloomfilter]),
        ("scrapy-redis-bloomfilter-block-cluster", {**bits, "block_num": 1}, URL, [BlockCluster]),
        ("scrapy-redis", {}, URL, [loops.ScrapyRedis, loops.ScrapyRedisBatched]),
        ("scrapy-redis", {}, TAB, [lambda: driver.sets()[0]]),
    ]


def run(settings):
    measured, lines = Measured(), []
    seconds = 0.5 if settings.short else 3
    count = settings.items // 10
    for layout, sizes, kind, makers in layouts(settings):
        for unseen in UNSEEN:
            with Server() as server:
                bench = Bench(server, items.make(kind, count, unseen), measured)
                peers = []
                for make in makers:
                    try:
                        peers.append(make())
                    except Exception as why:  # noqa: BLE001
                        lines.append(missing(group_of(layout, bench.stock), str(make), why))
                for _ in range(settings.rounds):
                    bench.filter(layout, sizes)
                    for peer in peers:
                        bench.peer(layout, peer, seconds)
    return {"lines": measured.lines() + lines, "facts": {"items": count}}


def group_of(layout, stock):
    return f"{layout}, {stock.group}"


class Bench:
    """Runs with one kind of items, on a Redis server that has a stock of these items."""

    def __init__(self, server, stock, measured):
        self.server, self.stock, self.measured = server, stock, measured
        stock.load(server.socket, STOCK)
        # Peers get fewer items, because some would take minutes for all.
        few = server.client.lrange(STOCK, 0, min(PEER_ITEMS, stock.count) - 1)
        self.distinct = len({item.partition(b"\t")[0] for item in few})
        for begin in range(0, len(few), 1000):
            server.client.rpush("few", *few[begin : begin + 1000])
        self.count = len(few)

    def clear(self):
        stocks = {STOCK.encode(), b"few"}
        self.server.delete("nothing", *(set(self.server.client.keys()) - stocks))

    def filter(self, layout, sizes):
        """Runs the daemon on a copy of the stock, with an empty filter."""
        self.clear()
        client = self.server.client
        client.config_set("slowlog-log-slower-than", 100)
        folder = tempfile.mkdtemp(prefix="urlseen-bench-")
        settings = {"kind": layout, "key": FILTER, **sizes}
        with Shared(self.server, folder, settings) as daemon:
            client.config_resetstat()
            client.slowlog_reset()
            seconds, served, used = daemon.run(STOCK)
            slow = [entry["duration"] for entry in client.slowlog_get(10_000)
                    if entry["command"].startswith(SCRIPT)]
        came = client.llen(SINK)
        if not self.stock.distinct - 1 - self.stock.distinct * 1e-3 <= came <= self.stock.distinct:
            raise RuntimeError(f"the sink has {came} items, {self.stock.distinct} are expected")
        group, case = group_of(layout, self.stock), "urlseen"
        count = self.stock.count
        say(group, case, count / seconds)
        self.measured.add(group, case, "items/s", count / seconds)
        self.measured.add(group, case, "server ns/item", served / count)
        self.measured.add(group, case, "client ns/item", sum(used.values()) / count)
        self.measured.add(group, case, "longest script, us", max(slow, default=0))
        calls = client.info("commandstats")
        for name, commands in (("reading", READS), ("writing", WRITES)):
            taken = sum(calls.get(f"cmdstat_{it}", {}).get("usec", 0) for it in commands)
            self.measured.add(group, case, f"server ns/item, {name} the filter", 1e3 * taken / count)

    def peer(self, layout, peer, seconds):
        """Runs a peer for some seconds, or on few items."""
        self.clear()
        group = group_of(layout, self.stock)
        if isinstance(peer, driver.Driver):
            few = Few("few", self.distinct)
            if not hasattr(peer, "is_tuned"):
                peer.tune(self.server, few)
                peer.is_tuned = True
            moved, taken, served = peer.run(self.server, few)
        else:
            self.server.client.copy("few", SOURCE_OF_PEERS)
            # The client has its defaults, so its replies are bytes.
            with redis.Redis(unix_socket_path=str(self.server.socket)) as connection:
                peer.prepare(connection)
                served, begun = self.server.processor_time(), time.perf_counter()
                moved = peer.run(connection, seconds)
                taken = time.perf_counter() - begun
                served = self.server.processor_time() - served
        say(group, peer.case, moved / taken)
        self.measured.add(group, peer.case, "items/s", moved / taken)
        self.measured.add(group, peer.case, "server ns/item", served / moved)


SOURCE_OF_PEERS = loops.SOURCE


class Few:
    """Small stock for a driver."""

    def __init__(self, key, distinct):
        self.key, self.distinct = key, distinct


class PyreBloom(driver.Driver):
    def prepare(self, server):
        """Makes the string of the filter with its full length."""
        server.delete(f"{FILTER}.0")
        _, capacity, rate = self.test.split(":")
        bits = int(-math.log(float(rate)) * int(capacity) / math.log(2) ** 2)
        server.client.setbit(f"{FILTER}.0", bits - 1, 0)


class BlockCluster(loops.Loop):
    case = "scrapy-redis-bloomfilter-block-cluster"
    note = "its BloomFilter, by Scrapy's fingerprints"

    def prepare(self, connection):
        sys.path.insert(0, str(items.ROOT / "scripts"))
        import peer_filters

        self.filter = peer_filters.BlockCluster(connection, FILTER, 30, 6, 1)
        # The string gets its full length.
        connection.setbit(f"{FILTER}0", 2**30 - 1, 0)

    def is_seen(self, item):
        return self.filter.seen(item)


def say(group, case, rate):
    print(f"{group:44} {case:44} {rate:12,.0f} items/s", file=sys.stderr, flush=True)
