"""Comparison of the daemon with the daemon of an earlier revision, in turns."""

from statistics import median

from . import programs
from .daemon import Filter
from .measured import Measured, stocks
from .sections.pipe import KINDS

# The earlier revision runs twice. The difference between its two runs is noise.
NOW, BEFORE, AGAIN = "now", "before", "before, again"
# Maximum loss of speed, and maximum difference between the two runs of the earlier revision.
TOLERANCE = 0.03
# Units, each with 1 if a higher figure is better, and -1 if a lower one is better.
UNITS = {"items/s": 1, "client ns/item": -1, "server ns/item": -1}


def run(settings, revision):
    """Measures both revisions and prints a row for each case. Returns the number of slower rows."""
    before = programs.build_revision(revision)
    filters = {
        NOW: Filter(settings.capacity, settings.error_rate),
        BEFORE: Filter(settings.capacity, settings.error_rate, before),
    }
    filters[AGAIN] = filters[BEFORE]
    measured = Measured()
    for bench in stocks(settings, measured, KINDS):
        order = list(filters.items())
        for _ in range(settings.rounds):
            for case, filter in order:
                bench.filter(filter, bench.stock.group, case)
            # The order changes, so that no case always follows the same other case.
            order.append(order.pop(0))
    return report(measured.values)


def report(values):
    """Prints a row for each kind of items and unit. Returns the number of slower rows."""
    print(f"{'':22}{'':16}{'now/before':>12}{'again/before':>14}")
    lost = 0
    for group in dict.fromkeys(group for group, _, _ in values):
        for unit, sign in UNITS.items():
            of = {case: median(values[group, case, unit]) for case in (NOW, BEFORE, AGAIN)}
            now, again = ((of[case] / of[BEFORE]) ** sign for case in (NOW, AGAIN))
            is_steady = abs(again - 1) <= TOLERANCE
            word = "" if now >= 1 - TOLERANCE else "slower" if is_steady else "wavers"
            lost += word == "slower"
            print(f"{group:22}{unit:16}{now:12.3f}{again:14.3f}  {word}")
    return lost
