"""Cost of an item by the number of partitions and of primaries, and cost of the router."""

from contextlib import ExitStack
from itertools import product

from .. import items
from ..cluster import Cluster
from ..divided import Divided
from ..items import TAB, URL
from ..measured import Measured, say

PRIMARIES, PARTITIONS = (1, 3, 6), (1, 16, 64)
UNSEEN = 30
# Number of partitions to which the router moves items.
ROUTED = 16


def run(settings):
    measured, tab = Measured(), items.make(TAB, settings.items, UNSEEN)
    url = items.make(URL, settings.items, UNSEEN)
    capacity = 2 * settings.items
    with ExitStack() as stack:
        clusters = [stack.enter_context(Cluster(primaries)) for primaries in PRIMARIES]
        crawls = [Divided(*pair, tab) for pair in product(clusters, PARTITIONS)]
        for crawl in crawls:
            crawl.load()
        # This run does not count: the servers take memory from the system and keep it.
        crawls[0].run(capacity)
        for _ in range(settings.rounds):
            for crawl in crawls:
                note(measured, f"partitions, {tab.group}", crawl, crawl.run(capacity))
            for cluster, stock in product(clusters, (tab, url)):
                crawl = Divided(cluster, ROUTED, stock)
                note(measured, f"router, {stock.group}", crawl, crawl.route())
    return {"lines": measured.lines(), "facts": {"items": settings.items}}


def note(measured, group, crawl, found):
    seconds, served, used = found
    case = case_of(crawl.cluster.primaries, crawl.partitions)
    count, client = crawl.stock.count, sum(used.values())
    say(f"{group:30} {case:30} {count / seconds:12,.0f} items/s {served / count:6.0f} ns of Redis")
    measured.add(group, case, "items/s", count / seconds)
    measured.add(group, case, "server ns/item", served / count)
    measured.add(group, case, "client ns/item", client / count)
    measured.add(group, case, "ns/item in all", (served + client) / count)


def case_of(primaries, partitions):
    """Returns the name of a case on the page."""
    of_primaries = f"{primaries} {'primary' if primaries == 1 else 'primaries'}"
    return f"{of_primaries}, {partitions} partition{'s' * (partitions > 1)}"
