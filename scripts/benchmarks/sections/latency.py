"""Time of a single item through an idle and a half-loaded daemon, and the cost of idling."""

import random
import re
import subprocess
import sys
import tempfile
import time

from .. import feeder, items, process
from ..daemon import SINK, SOURCE, PROCESSING, Daemon, Filter
from ..folders import ROOT
from ..line import line
from ..measured import Measured, say
from ..server import Server
from ..wire import Wire, command

MARKED = re.compile(feeder.MARK + rb"(\d+);")
SHARES = [0, *(share / 100 for share in range(1, 100)), 0.995, 0.999, 1]


def run(settings):
    filter = Filter(settings.capacity, settings.error_rate)
    pushes, idle, load = (200, 2, 2) if settings.short else (1000, 20, 5)
    measured = Measured()
    waits = {"idle": [], "half-loaded": []}
    stock = items.make(items.TAB, settings.items, 30)
    with Server() as server, tempfile.TemporaryDirectory(prefix="urlseen-bench-") as folder:
        for round in range(settings.rounds):
            with Daemon(server, filter, folder) as daemon:
                note(measured, waits, "idle", single_items(server, pushes, round))
                idling(measured, server, daemon, idle)
                # The highest rate is measured beside feeder and consumer, which share the machine.
                _, _, highest = loaded(server, stock, stock.count / load, load)
            # A new daemon is necessary, because the first one has seen the items.
            with Daemon(server, filter, folder):
                times, kept, _ = loaded(server, stock, highest / 2, load)
                note(measured, waits, "half-loaded", times)
                measured.add("half-loaded", "feeder", "items/s", kept)
                measured.add("half-loaded", "feeder", "share of the highest rate", kept / highest)
    quantiles = [
        line(group, "quantiles", "ms", [quantile(times, share) for share in SHARES])
        for group, times in waits.items()
    ]
    facts = {"shares": SHARES, "items": {group: len(times) for group, times in waits.items()}}
    return {"lines": measured.lines() + quantiles, "facts": facts}


def note(measured, waits, group, times):
    waits[group] += times
    for case, share in (("p50", 0.5), ("p99", 0.99), ("slowest", 1)):
        measured.add(group, case, "ms", quantile(times, share))
    say(f"{group:20} p50 {quantile(times, 0.5):.3f} ms, p99 {quantile(times, 0.99):.3f} ms")


def quantile(times, share):
    """Returns the time that this share of all values does not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def single_items(server, count, seed):
    """Returns the milliseconds from push to pop, for items that are alone in the daemon."""
    draw = random.Random(seed).random
    times = []
    with Wire(server.socket) as producer, Wire(server.socket) as consumer:
        for _ in range(count):
            consumer.send(command("BLPOP", SINK, 0))
            # The random pause avoids a common rhythm with timers of the daemon.
            time.sleep(0.02 * draw())
            push = command("RPUSH", SOURCE, feeder.marked())
            begun = time.perf_counter_ns()
            producer.send(push)
            consumer.reply()
            times.append((time.perf_counter_ns() - begun) / 1e6)
            producer.reply()
    return times


def idling(measured, server, daemon, seconds):
    """Measures an idle daemon: its share of a core, and its commands to Redis."""
    commands = lambda: server.client.info("stats")["total_commands_processed"]
    used, asked, begun = process.processor_time(daemon.pid), commands(), time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - begun
    used = process.processor_time(daemon.pid) - used
    measured.add("idle", "daemon", "% of a core", 100 * sum(used.values()) / 1e9 / passed)
    measured.add("idle", "daemon", "commands/s", (commands() - asked) / passed)


def loaded(server, stock, rate, seconds):
    """Returns the milliseconds of marked items, the rate of the feeder, and that of the daemon."""
    arguments = [server.socket, SOURCE, stock.path, rate, seconds]
    feeding = subprocess.Popen(
        [sys.executable, "-B", "-m", "benchmarks.feeder", *map(str, arguments)],
        cwd=ROOT / "scripts", stdout=subprocess.PIPE, text=True,
    )
    times = []
    # The consumer pops all items as soon as they arrive.
    pop = command("BLMPOP", 0.5, 1, SINK, "LEFT", "COUNT", 10_000)
    with Wire(server.socket) as consumer:
        while feeding.poll() is None:
            reply = consumer.ask(pop)
            now = time.monotonic_ns()
            times += [(now - int(pushed)) / 1e6 for pushed in MARKED.findall(reply)]
    if feeding.returncode != 0:
        raise RuntimeError(f"the feeder ended with status {feeding.returncode}")
    kept = float(feeding.stdout.read())
    waiting = server.client.llen(SOURCE) + server.client.llen(PROCESSING)
    return times, kept, kept * (1 - waiting / (rate * seconds))
