"""Producers: one pushes to the list of the router, one to the partitions."""

import hashlib
import json
import threading
import time
from random import Random

import redis

from .crawl import LIST, PARTITIONS
from .progress import until

#: Pushes items, unless this was done before. A producer repeats a push whose answer was lost. Each
#: call writes, because WAIT on a new connection does not wait for the writes of the old one.
PUSH = """
if redis.call('HINCRBY', KEYS[2], ARGV[1], 1) == 1 then
    redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
end
return 1
"""
#: Number of earlier items from which a producer draws one to push it again.
RECENT = 20_000
WAIT_MS = 1000


class Producer:
    """Thread that pushes items at a steady rate, and waits until replicas have them."""

    def __init__(self, crawl, seed, rate):
        self.crawl, self.group, self.rate = crawl, crawl.group, rate
        self.draw, self.name = Random(f"{seed} {self.kind}"), f"{self.kind}-{seed}"
        self.pushed, self.batches, self.recent, self.last = 0, 0, [], {}
        #: Distinct items that replicas have acknowledged.
        self.wanted = set()

    def work(self, is_done: threading.Event, items):
        """Pushes at least this number of items, and continues until the faults are done."""
        begun, first = time.monotonic(), self.pushed
        while not (is_done.is_set() and self.pushed >= items):
            self.push_batch()
            ahead = (self.pushed - first) / self.rate - (time.monotonic() - begun)
            if ahead > 0 and not (is_done.is_set() and self.pushed >= items):
                time.sleep(ahead)

    def item(self):
        """Draws an item: a new one, or one that was drawn before."""
        if self.recent and self.draw.random() < 0.6:
            return self.draw.choice(self.recent)
        item = self.new_item(f"{self.name}-{self.pushed}-{self.draw.random()}")
        if len(self.recent) < RECENT:
            self.recent.append(item)
        else:
            self.recent[self.draw.randrange(RECENT)] = item
        return item

    def push(self, key, items):
        """Pushes items to a list. Tries all servers until one of them has acknowledged the push."""
        guard = f"pushed:{key}" if "{" in key else f"{{{key}}}:pushed"
        words = (PUSH, 2, key, guard, self.batches, *items)
        until("acknowledged push", lambda: any(self.has_taken(it, words) for it in self.order(key)))
        self.batches += 1
        self.pushed += len(items)
        self.wanted.update(items)

    def order(self, key):
        """Returns all servers. The one that took the last push to the key is the first."""
        return sorted(self.group.servers, key=lambda server: server is not self.last.get(key))

    def has_taken(self, server, words):
        """Pushes to a server, and returns true if enough of its replicas have the items."""
        try:
            pipe = server.client.pipeline(transaction=False)
            pipe.eval(*words)
            pipe.wait(self.group.wait_replicas, WAIT_MS)
            _, replicas = pipe.execute()
        except redis.RedisError:
            return False
        self.last[words[2]] = server
        return replicas >= self.group.wait_replicas


class ListProducer(Producer):
    """Producer that does not know the partitions."""

    kind = "list"

    def push_batch(self):
        self.push(LIST, [self.item_of_list() for _ in range(self.draw.randint(1, 400))])

    def item_of_list(self):
        chance = self.draw.random()
        number = f"{self.name}-{self.pushed}-{self.draw.getrandbits(64):x}"
        if chance < 0.1:
            return json.dumps({"url": f"https://example.com/{number}", "dont_filter": True})
        return f"no URL {number}" if chance < 0.102 else self.item()

    @staticmethod
    def new_item(name):
        return f"https://example.com/{name}"


class PartitionProducer(Producer):
    """Producer that computes the partition of each item."""

    kind = "partitions"

    def push_batch(self):
        parts = {}
        for _ in range(self.draw.randint(1, 400)):
            item = self.item()
            parts.setdefault(int(item[:2], 16) * PARTITIONS // 256, []).append(item)
        for number, items in parts.items():
            self.push(self.crawl.sources[number], items)

    @staticmethod
    def new_item(name):
        return hashlib.sha1(name.encode()).hexdigest()
