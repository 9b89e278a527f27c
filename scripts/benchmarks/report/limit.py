"""Limit for the daemon's rate: the fastest mover, a program that moves items without a filter."""

from ..line import find, median, ratios, values

RATE = "items/s"
SERVED = "server ns/item"


def unseen(group):
    """Returns the percentage of unseen items in a group."""
    return int(group.rpartition(", ")[2].split()[0])


def limit(lines, group):
    """Returns the fastest mover that pushes as many items as a filter."""
    last = f"pushes {unseen(group)} %"
    is_one = lambda case: case.startswith("mover, ") and case.endswith(last)
    movers = [line for line in find(lines, group, None, RATE) if is_one(line["case"])]
    if not movers:
        return None
    return max(movers, key=lambda line: median(line["values"]))["case"]


def shares(lines, group):
    """Returns the ratio of each case of a group to the limit, for each round."""
    best = limit(lines, group)
    below = values(lines, group, best, RATE) if best else []
    rates = find(lines, group, None, RATE)
    return {line["case"]: ratios(line["values"], below) for line in rates}
