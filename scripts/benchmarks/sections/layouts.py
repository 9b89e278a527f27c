"""Filters in Redis, by layout, beside the projects whose layouts they are."""

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
# More items than the slowest one can take in its time.
PEER_ITEMS = 100_000
SCRIPT = b"EVALSHA"
# Commands of Redis that read bits, and those that set them.
READS, WRITES = ("bitfield_ro", "getrange", "smismember"), ("bitfield", "setrange", "sadd")


def layouts(settings):
    """Settings, kind of items and peers, by layout."""
    sized = {"capacity": settings.capacity if settings.short else CAPACITY, "error_rate": ERROR_RATE}
    bits = {"bit": 30, "hash_number": 6}
    pyrebloom = f"pyrebloom:{sized['capacity']}:{sized['error_rate']}"
    batched = "pyreBloom's formulas, SETBIT pipelined"
    note = "ready fingerprints; a SETBIT a hash; its own package cannot be installed"
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
    """Runs on one kind of items, in a server that has a stock of them."""

    def __init__(self, server, stock, measured):
        self.server, self.stock, self.measured = server, stock, measured
        stock.load(server.socket, STOCK)
        # Some peers would take minutes for all items.
        few = server.client.lrange(STOCK, 0, min(PEER_ITEMS, stock.count) - 1)
        self.distinct = len({item.partition(b"\t")[0] for item in few})
        for begin in range(0, len(few), 1000):
            server.client.rpush("few", *few[begin : begin + 1000])
        self.count = len(few)

    def clear(self):
        stocks = {STOCK.encode(), b"few"}
        self.server.delete("nothing", *(set(self.server.client.keys()) - stocks))

    def filter(self, layout, sizes):
        """Lets the daemon move the stock, with an empty filter."""
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
            raise RuntimeError(f"{came} items came out, {self.stock.distinct} are different")
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
        """Lets a peer work for some seconds, or on a few items."""
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
            # As clients are made by default: bytes in, bytes out.
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
    """A small stock for a driver."""

    def __init__(self, key, distinct):
        self.key, self.distinct = key, distinct


class PyreBloom(driver.Driver):
    def prepare(self, server):
        """Makes the strings with their later length."""
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
        # With its later length.
        connection.setbit(f"{FILTER}0", 2**30 - 1, 0)

    def is_seen(self, item):
        return self.filter.seen(item)


def say(group, case, rate):
    print(f"{group:44} {case:44} {rate:12,.0f} items/s", file=sys.stderr, flush=True)
