"""Processor time of an item for each part of the work, and the highest possible rate."""

from ..line import median, values
from .figures import number
from .goals import CASES, TAB, URL
from .limit import RATE, SERVED, limit
from .table import row

CLIENT = "client ns/item"


def table(data):
    """Makes a row for each case of urlseen, and one for the fastest mover."""
    lines, rows = data.lines("pipe"), []
    if not lines:
        return []
    cores = data.sections["pipe"]["machine"]["cores"]
    for group in (TAB, URL):
        best = limit(lines, group)
        for case in [best, *CASES] if best else []:
            rows += cost(lines, group, case, cores)
    if not rows:
        return []
    head = row(
        "", "Redis, ns", "link and log, ns", "filter, ns", "sum, ns",
        "possible items/s", "measured items/s", "measured / possible",
    )
    return [head, "|---|---|---|---|---|---|---|---|", *rows]


def cost(lines, group, case, cores):
    """Makes the row of a case, if it was measured."""
    redis, client, rate = (
        values(lines, group, case, unit) for unit in (SERVED, CLIENT, RATE)
    )
    if not (redis and client and rate):
        return []
    filter = values(lines, group, f"{case}, threads filter", CLIENT)
    judged = median(filter) if filter else 0
    link = median(client) - judged
    together = median(redis) + median(client)
    # Each of the mover's two threads can use at most one core.
    most = 1e9 * cores / together if judged else 1e9 / max(median(redis), link)
    cells = (median(redis), link, judged, together, most, median(rate))
    return [row(f"{group}: {case}", *map(number, cells), f"{100 * median(rate) / most:.0f} %")]
