"""urlseen beside the mover, a program that moves items without a filter."""

from itertools import product

from ..daemon import Filter
from ..items import TAB, URL
from ..measured import Measured, stocks
from ..mover import Mover

KINDS = [(kind, unseen) for kind in (TAB, URL) for unseen in (30, 5)]
BATCHES = (100, 1000, 5000)
IN_FLIGHT = (1, 2, 3)
# Batch size with which a mover is fastest. The daemon runs with it and with its default.
LARGE = 5000
# Group that also has other ways to move a list.
OTHER_WAYS = "tab, 30 % unseen"


def run(settings):
    filter = Filter(settings.capacity, settings.error_rate)
    measured, facts = Measured(), {"items": settings.items, "capacity": settings.capacity}
    for bench in stocks(settings, measured, KINDS):
        group = bench.stock.group
        facts[group] = {
            "mean bytes": round(bench.stock.mean_bytes, 1), "distinct": bench.stock.distinct
        }
        movers = [
            *(Mover(*batches, bench.stock.unseen) for batches in product(BATCHES, IN_FLIGHT)),
            # These movers push all items.
            *(Mover(batch, 2, 100) for batch in BATCHES),
        ]
        if bench.stock.group == OTHER_WAYS:
            movers += [Mover(1000, 2, 100, "script"), Mover(1000, 2, 100, "lmove")]
        # This run does not count: the server takes memory from the system and keeps it.
        bench.move(Mover(1000, 2, 100))
        for _ in range(settings.rounds):
            for mover in movers:
                bench.move(mover, group)
            bench.filter(filter, group)
            bench.filter(filter, group, f"urlseen, batches of {LARGE}", batch=LARGE)
    return {"lines": measured.lines(), "facts": facts}
