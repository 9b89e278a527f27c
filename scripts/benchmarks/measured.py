"""Runs of daemons, and of movers: programs that move items without a filter."""

import sys
import tempfile
from collections import Counter

from . import items, line
from .daemon import SINK, Daemon
from .server import Server

STOCK = "stock"


class Measured:
    """Values of all runs by group, case and unit."""

    def __init__(self):
        self.values = {}

    def add(self, group, case, unit, value):
        self.values.setdefault((group, case, unit), []).append(value)

    def lines(self):
        return [line.line(*key, values) for key, values in self.values.items()]


class Bench:
    """Runs with one kind of items, on a Redis server that has a stock of these items."""

    def __init__(self, server, stock, measured):
        self.server, self.stock, self.measured = server, stock, measured

    def load(self):
        self.server.delete("source", "sink", SINK, STOCK)
        self.stock.load(self.server.socket, STOCK)

    def move(self, mover, group=None):
        """Runs a mover on a copy of the stock. Keeps the values only if there is a group."""
        seconds, served, used = mover.run(self.server, STOCK)
        if group:
            self.note(group, mover.case, seconds, served, used)

    def filter(self, filter, group, case="urlseen", **options):
        """Runs the daemon on a copy of the stock, and checks the number of unseen items."""
        folder = tempfile.mkdtemp(prefix="urlseen-bench-")
        with Daemon(self.server, filter, folder, **options) as daemon:
            bits = daemon.filter_bytes()
            seconds, served, used = daemon.run(STOCK)
            self.check()
            memory = daemon.memory()
        self.note(group, case, seconds, served, sum(used.values()))
        for threads, nanoseconds in by_kind(used).most_common():
            share = nanoseconds / self.stock.count
            if share >= 1:
                self.measured.add(group, f"{case}, threads {threads}", "client ns/item", share)
        for name, size in memory.items():
            self.measured.add(group, case, f"{name}, bytes beyond the filter", size - bits)

    def note(self, group, case, seconds, served, used):
        count = self.stock.count
        rate, share = count / seconds, served / count
        say(f"{group:20} {case:48} {rate:12,.0f} items/s {share:6.0f} ns of Redis")
        self.measured.add(group, case, "items/s", count / seconds)
        self.measured.add(group, case, "server ns/item", served / count)
        self.measured.add(group, case, "client ns/item", used / count)

    def check(self):
        """Checks the number of items in the sink. The error rate permits very few losses."""
        came, due = self.server.client.llen(SINK), self.stock.distinct
        if came > due or due - came > 1 + due * 1e-6:
            raise RuntimeError(f"the sink has {came} items; {due} different items were pushed")


def by_kind(used):
    """Sums the times of threads whose names differ only in a number at the end."""
    kinds = Counter()
    for thread, nanoseconds in used.items():
        kinds[thread.rstrip("0123456789").rstrip("-")] += nanoseconds
    return kinds


def stocks(settings, measured, kinds):
    """Yields a bench for each kind of items and share of unseen items, on one server."""
    with Server() as server:
        for kind, unseen in kinds:
            bench = Bench(server, items.make(kind, settings.items, unseen), measured)
            bench.load()
            yield bench


def say(words):
    print(words, file=sys.stderr, flush=True)
