"""Filters of other projects, used in the same way as in those projects.

Most filters are the real classes of packages. BloomFilter_imooc and pyreBloom cannot be installed,
so this module has their formulas and their MurmurHash64A.

A filter is made with a connection and a key. `seen(link)` adds a link, and returns `True` if the link
was seen before. `ALGORITHM` is the value of `fingerprint.algorithm` for its fingerprints.
"""

import importlib.util
import math
import struct
from importlib.metadata import distribution

import mmh3
from scrapy import Request
from scrapy.utils.request import fingerprint
from scrapy_redis.dupefilter import RFPDupeFilter

BLOCK_CLUSTER = "scrapy-redis-bloomfilter-block-cluster"


def block_cluster_module():
    """Imports only the filter of the package. The rest of the package needs an old Scrapy."""
    path = distribution(BLOCK_CLUSTER).locate_file(
        "scrapy_redis_bloomfilter_block_cluster/bloomfilter.py"
    )
    spec = importlib.util.spec_from_file_location("block_cluster", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imooc_size(capacity, error_rate):
    """Returns bits, hashes and blocks."""
    bits = math.ceil(capacity * math.log2(math.e) * math.log2(1 / error_rate))
    hashes = math.ceil(math.log1p(2) * bits / capacity)
    return bits, hashes, math.ceil(math.ceil(bits / 8 / 1024 / 1024) / 512)


def imooc_bits(text, seeds):
    signed = (mmh3.hash(text, seed) for seed in seeds)
    return [h if h >= 0 else 2**31 - 1 - h for h in signed]


def murmur_hash_64a(data, seed):
    """Computes MurmurHash64A by Austin Appleby, according to its definition."""
    multiplier, mask = 0xC6A4A7935BD1E995, 2**64 - 1
    state = seed ^ len(data) * multiplier & mask
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * multiplier & mask
        word = (word ^ word >> 47) * multiplier & mask
        state = (state ^ word) * multiplier & mask
    if rest := data[whole:]:
        state = (state ^ int.from_bytes(rest, "little")) * multiplier & mask
    state = (state ^ state >> 47) * multiplier & mask
    return state ^ state >> 47


def pyrebloom_size(capacity, error_rate, rounded):
    """Returns bits and seeds. pyreBloom rounds the error rate to a C float, its port does not."""
    single = struct.unpack("f", struct.pack("f", error_rate))[0]
    rate = single if rounded else error_rate
    bits = int(-(math.log(rate) * capacity) / (math.log(2) * math.log(2)))
    hashes = math.ceil(math.log(2) * bits / capacity)
    seeds = [314159265]
    while len(seeds) < hashes:
        seeds.append((1664525 * seeds[-1] + 1013904223) % 2**32)
    return bits, seeds


class ScrapyRedis:
    ALGORITHM = "scrapy-redis"

    def __init__(self, server, key):
        self.filter = RFPDupeFilter(server, key)

    def seen(self, link):
        return self.filter.request_seen(Request(link))


class ScrapyRedisBloomfilter:
    ALGORITHM = "scrapy-redis"

    def __init__(self, server, key, bit, hash_number):
        from scrapy_redis_bloomfilter.dupefilter import RFPDupeFilter

        self.filter = RFPDupeFilter(server, key, False, bit, hash_number)

    def seen(self, link):
        return self.filter.request_seen(Request(link))


class Tested:
    """Filter that tests and adds a fingerprint in two steps."""

    ALGORITHM = "scrapy"

    def seen(self, link):
        text = fingerprint(Request(link)).hex()
        if self.exists(text):
            return True
        self.insert(text)
        return False


class BlockCluster(Tested):
    def __init__(self, server, key, bit, hash_number, block_num):
        peer = block_cluster_module().BloomFilter(server, key, bit, hash_number, block_num)
        self.exists, self.insert = peer.exists, peer.insert


class Bits(Tested):
    """Filter whose method `positions` returns the strings and bits of a text."""

    def __init__(self, server):
        self.server = server

    def exists(self, text):
        pipe = self.server.pipeline(transaction=False)
        for key, bit in self.positions(text):
            pipe.getbit(key, bit)
        return all(pipe.execute())

    def insert(self, text):
        pipe = self.server.pipeline(transaction=False)
        for key, bit in self.positions(text):
            pipe.setbit(key, bit, 1)
        pipe.execute()


class Imooc(Bits):
    def __init__(self, server, key, capacity, error_rate):
        super().__init__(server)
        self.key = key
        _, hashes, self.blocks = imooc_size(capacity, error_rate)
        # The block-cluster package has the same seeds.
        self.seeds = block_cluster_module().BloomFilter.SEEDS[:hashes]

    def positions(self, text):
        key = f"{self.key}_{ord(text[0]) % self.blocks}"
        return [(key, bit) for bit in imooc_bits(text, self.seeds)]


class PyreBloom(Bits):
    ROUNDED = True

    def __init__(self, server, key, capacity, error_rate):
        super().__init__(server)
        self.key = key
        self.bits, self.seeds = pyrebloom_size(capacity, error_rate, self.ROUNDED)

    def positions(self, text):
        for seed in self.seeds:
            position = murmur_hash_64a(text.encode(), seed) % self.bits
            string, bit = divmod(position, 2**32 - 1)
            yield f"{self.key}.{string}", bit


class Luw2007(PyreBloom):
    ROUNDED = False


LAYOUTS = {
    "scrapy-redis": ScrapyRedis,
    "scrapy-redis-bloomfilter": ScrapyRedisBloomfilter,
    BLOCK_CLUSTER: BlockCluster,
    "imooc": Imooc,
    "pyrebloom": PyreBloom,
    "luw2007-bloomfilter": Luw2007,
}
