"""The pipe's limit, and urlseen beside it."""

from ..daemon import Filter
from ..items import TAB, URL
from ..measured import Measured, stocks
from ..mover import Mover

KINDS = [(kind, unseen) for kind in (TAB, URL) for unseen in (30, 5)]
BATCHES = (100, 1000, 5000)
IN_FLIGHT = (1, 2, 3)


def run(settings):
    filter = Filter(settings.capacity, settings.error_rate)
    measured, facts = Measured(), {"items": settings.items, "capacity": settings.capacity}
    for bench in stocks(settings, measured, KINDS):
        group = bench.stock.group
        facts[group] = {
            "mean bytes": round(bench.stock.mean_bytes, 1), "distinct": bench.stock.distinct
        }
        movers = [
            *(Mover(batch, flight, bench.stock.unseen) for batch in BATCHES for flight in IN_FLIGHT),
            # What it takes to push all of it on, as a mover that filters nothing would.
            *(Mover(batch, 2, 100) for batch in BATCHES),
        ]
        # Warms up: the server takes memory from the system that it has from then on.
        bench.move(movers[-2])
        for _ in range(settings.rounds):
            for mover in movers:
                bench.move(mover, group)
            bench.filter(filter, group)
    return {"lines": measured.lines(), "facts": facts}
