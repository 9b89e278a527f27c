"""Kills in the middle of a crawl: victims, moments, and the pages that a spider held."""

import pickle
import random
from dataclasses import dataclass

from w3lib.url import canonicalize_url

from .processes import until

SPIDER, ALL_SPIDERS, DAEMON, PRIMARY = "spider", "all spiders", "daemon", "primary"
#: The kills of a round, and the longest pause before a kill.
DRAWN = [SPIDER] * 4 + [ALL_SPIDERS, DAEMON, DAEMON]
PAUSE_S = 0.2


@dataclass(frozen=True)
class Kill:
    """SIGKILL for spiders, a daemon, or a primary of the Redis Cluster."""

    #: Share of the pages that are fetched before the kill.
    share: float
    victim: str
    #: Further delay in seconds. `None` waits until the victim is in the middle of its work.
    pause_s: float | None = None
    #: Number from 0 to 1 that selects one of several victims.
    draw: float = 0.0

    def drawn(self, programs):
        """Returns the programs to kill."""
        if self.victim == ALL_SPIDERS:
            return list(programs)
        return [programs[int(self.draw * len(programs))]]


IN_THE_MIDDLE = (Kill(1 / 3, SPIDER), Kill(1 / 2, DAEMON))
#: The same, with a kill that a crawl on a cluster must survive, too.
ON_CLUSTER = (*IN_THE_MIDDLE, Kill(2 / 3, PRIMARY, 0.0))


def at_random(seed, *, on_cluster=False):
    """Draws kills from a seed, in the order of their moments."""
    draw = random.Random(seed)
    victims = [*DRAWN, PRIMARY] if on_cluster else DRAWN
    victims = draw.sample(victims, len(victims))
    shares = sorted(draw.random() for _ in victims)
    return tuple(
        Kill(share, victim, draw.uniform(0, PAUSE_S), draw.random())
        for share, victim in zip(shares, victims)
    )


def held_by(spider, redis, partitions):
    """Returns the pages that Redis holds for a killed spider."""
    client = redis.client

    def is_gone():
        return spider.name not in redis.names_of_clients()

    # Redis executes the commands that were sent before it sees the end of the connection.
    until(is_gone, f"the connections of {spider.name} to end", watch=redis.check)
    ours = f"-{spider.process.pid}#".encode()
    values = []
    for partition in partitions:
        # A spider that has popped nothing is no consumer.
        for name in client.hkeys(partition.consumers):
            if ours in name:
                values += client.hvals(partition.own(f"held:{name.decode()}"))
    # SCORE, COUNT and a pickle that one of these spiders wrote.
    items = [pickle.loads(value.split(b" ", 2)[2]) for value in values]
    return {canonicalize_url(item["url"]) for item in items}
