"""Peers in Python. Each pops items from `SOURCE` for some seconds, and pushes the unseen ones.

All of them use redis-py, with the default settings of the peer.
"""

import sys
import time
from importlib.metadata import version

from scrapy import Request
from scrapy_redis.dupefilter import RFPDupeFilter

from . import packages
from .imooc import Filter
from .size import CAPACITY, ERROR_RATE

SOURCE, SINK, FILTER = "source", "sink", "filter"
BATCH = 1000


class Loop:
    """Peer that pops one item at a time.

    `case` is its name, `note` describes its use, and `kind` is the kind of its items.
    """

    case = note = ""
    kind = "url"

    def prepare(self, connection):
        """Makes the filter on an empty server."""

    def is_seen(self, item):
        """Returns `True` if the item was seen before, and adds it."""
        raise NotImplementedError

    def run(self, connection, seconds):
        """Pops items for a number of seconds. Returns the number of items."""
        items, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            item = connection.lpop(SOURCE)
            if item is None:
                break
            if not self.is_seen(item.decode()):
                connection.rpush(SINK, item)
            items += 1
        return items


class ScrapyRedis(Loop):
    case = "scrapy-redis, its loop"

    def __init__(self):
        self.note = f"{versions('scrapy-redis')}; RFPDupeFilter.request_seen, one item at a time"

    def prepare(self, connection):
        self.filter = RFPDupeFilter(connection, FILTER)

    def is_seen(self, item):
        return self.filter.request_seen(Request(item))


class ScrapyRedisBatched(ScrapyRedis):
    case = "scrapy-redis, batched"

    def __init__(self):
        self.note = (
            f"{versions('scrapy-redis')}; its request_fingerprint; one LPOP, one pipeline"
            f" of SADD and one RPUSH for {BATCH} items"
        )

    def run(self, connection, seconds):
        items, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            batch = connection.lpop(SOURCE, BATCH)
            if not batch:
                break
            tests = connection.pipeline(transaction=False)
            for item in batch:
                tests.sadd(FILTER, self.filter.request_fingerprint(Request(item.decode())))
            unseen = [item for item, added in zip(batch, tests.execute()) if added]
            if unseen:
                connection.rpush(SINK, *unseen)
            items += len(batch)
        return items


class ScrapyRedisBloomfilter(Loop):
    case = "scrapy-redis-bloomfilter"

    def __init__(self):
        folder = str(packages.fetch(packages.BLOOMFILTER))
        # The folder is at the end of the path, so that only this package is imported from it.
        if folder not in sys.path:
            sys.path.append(folder)
        from scrapy_redis_bloomfilter import RFPDupeFilter, defaults

        self.bits = defaults.BLOOMFILTER_BIT
        self.hashes = defaults.BLOOMFILTER_HASH_NUMBER
        self.make = RFPDupeFilter
        name, number = packages.BLOOMFILTER
        self.note = (
            f"{name} {number}, {versions('scrapy-redis')}; its RFPDupeFilter.request_seen, with"
            f" its defaults: 2^{self.bits} bits, {self.hashes} hashes"
        )

    def prepare(self, connection):
        self.filter = self.make(connection, FILTER, False, self.bits, self.hashes)
        # The string gets its full length, because growth takes longer than all measured work.
        connection.setbit(FILTER, 2**self.bits - 1, 0)

    def is_seen(self, item):
        return self.filter.request_seen(Request(item))


class Imooc(Loop):
    case = "imooc's formulas in Python"
    kind = "tab"
    note = (
        f"precomputed fingerprints; GETBIT for each hash, then SETBIT for each hash; for"
        f" {CAPACITY:,} keys at {ERROR_RATE:g}; mmh3 {version('mmh3')}"
    )

    def prepare(self, connection):
        self.filter = Filter(connection, FILTER, CAPACITY, ERROR_RATE)
        self.filter.grow()

    def is_seen(self, item):
        fingerprint, _, _ = item.partition("\t")
        if self.filter.has(fingerprint):
            return True
        self.filter.add(fingerprint)
        return False


ALL = (ScrapyRedis, ScrapyRedisBatched, ScrapyRedisBloomfilter, Imooc)


def versions(name):
    return f"{name} {version(name)}, Scrapy {version('Scrapy')}, redis-py {version('redis')}"
