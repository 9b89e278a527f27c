"""Measurement of the memory that Redis needs for a URL, with each peer."""

import math

from ..line import line, missing
from ..server import Server
from . import bloom, packages
from .imooc import Filter
from .loops import FILTER, ScrapyRedisBloomfilter
from .size import CAPACITY, ERROR_RATE

GROUP = "peers, memory"
UNIT = "bytes/URL"
# A full hash table of a set doubles. A full table has the least memory for a member. Just after the
# doubling it has the most, because the old table stays until all members have moved.
FULL, DOUBLING = 1 << 20, (1 << 20) + 1000
CHUNK = 1000


def measure(module):
    """Returns a line for each peer. `module` is the path of RedisBloom, or `None` without it."""
    lines = [exact(digits, count) for digits in (True, False) for count in (FULL, DOUBLING)]
    for peer in (redisbloom, scrapy_redis_bloomfilter, imooc):
        try:
            lines.append(peer(module))
        except Exception as why:  # noqa: BLE001
            lines.append(missing(GROUP, peer.__name__, why))
    return lines


def exact(digits, count):
    """Measures a set of fingerprints as hex digits, as in scrapy-redis, or as bytes."""
    with Server() as server:
        before = server.settled_memory()
        for begin in range(0, count, CHUNK):
            numbers = range(begin, min(begin + CHUNK, count))
            server.client.sadd(FILTER, *(fingerprint(number, digits) for number in numbers))
        taken = server.settled_memory() - before
    what = "40 hex digits (scrapy-redis)" if digits else "20 bytes"
    when = "hash table full" if count == FULL else "hash table doubling"
    note = f"exact; {count:,} members"
    return line(GROUP, f"SADD, {what}, {when}", UNIT, [taken / count]) | {"note": note}


def fingerprint(number, digits):
    """Makes a unique fingerprint. The memory of a set depends only on number and length."""
    return f"{number:040x}" if digits else number.to_bytes(20, "big")


def redisbloom(module):
    if module is None:
        raise packages.Missing("the module RedisBloom is missing")
    with Server(arguments=["--loadmodule", module]) as server:
        before = server.settled_memory()
        bloom.reserve(server)
        taken = server.settled_memory() - before
        size = server.client.execute_command("BF.INFO", FILTER, "SIZE")[0]
        note = (
            f"RedisBloom {bloom.version(server)}, for {CAPACITY:,} keys at {ERROR_RATE:g};"
            f" {size / CAPACITY:.2f} by BF.INFO, the rest is the allocator's rounding;"
            " its default filter has 100 keys at 0.01, and grows"
        )
    return line(GROUP, "RedisBloom", UNIT, [taken / CAPACITY]) | {"note": note}


def scrapy_redis_bloomfilter(_module):
    peer = ScrapyRedisBloomfilter()
    with Server() as server:
        before = server.settled_memory()
        peer.prepare(server.client)
        taken = server.settled_memory() - before
    # Number of URLs by the formula for this number of hashes, if the hashes were independent.
    share = -math.log1p(-(ERROR_RATE ** (1 / peer.hashes)))
    urls = share * 2**peer.bits / peer.hashes
    note = (
        f"its default of 2^{peer.bits} bits and {peer.hashes} hashes, for the {urls:,.0f} URLs that"
        f" it could hold at {ERROR_RATE:g} if its hashes were independent;"
        " the allocator rounds up"
    )
    return line(GROUP, peer.case, UNIT, [taken / urls]) | {"note": note}


def imooc(_module):
    with Server() as server:
        before = server.settled_memory()
        filter = Filter(server.client, FILTER, CAPACITY, ERROR_RATE)
        filter.grow()
        taken = server.settled_memory() - before
    note = (
        f"for {CAPACITY:,} keys at {ERROR_RATE:g}; {filter.hashes} hashes; a string grows to 512 MiB"
        " with any capacity, and the allocator rounds up; its default is 1,000,000,000 keys at 1e-8"
    )
    return line(GROUP, "imooc's formulas in Python", UNIT, [taken / CAPACITY]) | {"note": note}
