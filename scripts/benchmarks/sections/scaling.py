"""Effect of the batch size and of the number of filter threads."""

import os

from ..daemon import Filter
from ..items import TAB, URL
from ..measured import Measured, stocks
from ..mover import Mover

UNSEEN = 30
BATCHES = (100, 300, 1000, 3000, 10_000)


def run(settings):
    filter = Filter(settings.capacity, settings.error_rate)
    measured = Measured()
    for bench in stocks(settings, measured, [(TAB, UNSEEN), (URL, UNSEEN)]):
        group = bench.stock.group
        bench.move(Mover(1000, 2, 100))
        for _ in range(settings.rounds):
            if bench.stock.kind == TAB:
                for batch in BATCHES:
                    bench.move(Mover(batch, 2, UNSEEN), f"batch size, {group}")
                    bench.filter(filter, f"batch size, {group}", f"urlseen, {batch}", batch=batch)
            for threads in thread_counts():
                case = f"urlseen, {threads} thread{'s' * (threads > 1)}"
                bench.filter(filter, f"filter threads, {group}", case, threads=threads)
    return {"lines": measured.lines(), "facts": {"items": settings.items}}


def thread_counts():
    """Returns 1, 2, and further powers of two up to the number of cores."""
    counts = [1, 2]
    while counts[-1] * 2 <= (os.cpu_count() or 1):
        counts.append(counts[-1] * 2)
    return counts
