"""Counts of lost and repeated items, and of items that Redis lost."""

from collections import Counter
from dataclasses import dataclass, field

from .crawl import ask, read


@dataclass
class Verdict:
    """Outcome of one round."""

    pushed: int
    distinct: int
    found: int
    lost: set
    repeated: list
    unknown: set
    #: Lost items that an earlier primary had, and that the server in its place lacked.
    lost_by_redis: set
    faults: Counter = field(default_factory=Counter)

    def __str__(self):
        return described(self.counts())

    def is_good(self):
        return not (self.lost or self.repeated or self.unknown)

    def counts(self):
        """Returns the numbers of items and of faults."""
        items = Counter({
            "pushed": self.pushed,
            "distinct": self.distinct,
            "lost": len(self.lost),
            "repeated": len(self.repeated),
            "unknown": len(self.unknown),
            "lost by Redis": len(self.lost_by_redis),
        })
        items.update(self.faults)
        return items


def described(counts):
    """Returns counts as one line."""
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


class Oracle:
    """Knows the items that a failover may have lost."""

    def __init__(self, crawl):
        self.crawl = crawl
        self.missing = set()

    def compare(self, old, new):
        """Notes the items that an earlier primary had and its successor lacks.

        The items of a partition never leave its lists, so this comparison can be late.
        """
        keys = self.crawl.lists()
        with old.past() as past:
            had = {key: items for key, items in ask(past, "LRANGE", keys, 0, -1) if items}
        has = ask(new.client, "LRANGE", [key for key in keys if key in had], 0, -1)
        present = {it for key, items in has for it in read(key, items)}
        missing = {it for key, items in had.items() for it in read(key, items)} - present
        self.missing |= missing
        return len(missing)

    def judge(self, producers):
        """Compares the items of the producers with those in the sinks and rejects."""
        wanted = set().union(*(it.wanted for it in producers))
        found = Counter(self.crawl.found())
        absent = wanted - found.keys()
        return Verdict(
            pushed=sum(it.pushed for it in producers),
            distinct=len(wanted),
            found=len(found),
            lost=absent - self.missing,
            # A router may push an item without a fingerprint again after a fault.
            repeated=[
                it for it, count in found.items() if count > 1 and not it.startswith(("{", "no URL"))
            ],
            unknown=found.keys() - wanted,
            lost_by_redis=absent & self.missing,
        )
