"""Section `list`: items that wait in a list of Redis, and the comparison of two revisions."""

import json
import os
import shutil
import subprocess
import time
from functools import partial
from itertools import islice
from statistics import median

import redis

from . import tools
from .server import cpu_seconds, redis_server, running, wait_until

SOURCE, SINK, STOCK, FILTER = "demo:discovered", "demo:unseen", "stock", "filter"
OWN_KEYS = [f"urlseen:{{{SOURCE}}}:{key}" for key in ("processing", "state", "lease")]
ERROR_RATE = 1e-8
# Batches of the mover.
BATCH, IN_FLIGHT = 1000, 3
# Number of items in a push to the stock, and of keys in a BF.MADD.
CHUNK = 5000
# Number of items that scrapy-redis gets, more than it can take in its seconds.
FEW = 100_000
# Maximum loss of speed of a revision, and maximum difference between two runs of the same program.
TOLERANCE = 0.03


class List:
    """Runs with one kind of items, on a server that has a stock of them."""

    def __init__(self, server, kind, sizes, figures):
        self.server, self.kind, self.sizes, self.figures = server, kind, sizes, figures
        self.group = f"{kind} items"
        path, self.distinct = tools.items(kind, sizes.items)
        server.client.delete(STOCK)
        for chunk in chunks(path):
            server.client.rpush(STOCK, *chunk)

    def add(self, case, count, seconds, served, used):
        self.figures.add(self.group, case, "items/s", count / seconds)
        self.figures.add(self.group, case, "Redis ns/item", 1e9 * served / count)
        self.figures.add(self.group, case, "client ns/item", 1e9 * used / count)

    def daemon(self, case, folder, program=tools.URLSEEN):
        """Lets urlseen move a copy of the stock. `folder` has its half-full filter."""
        client = self.server.client
        client.delete(SOURCE, SINK, *OWN_KEYS)
        client.copy(STOCK, "waiting")
        with tools.folder() as place:
            storage = place / "storage"
            shutil.copytree(folder, storage)
            # Otherwise the system would write the copy to the disk during the measurement.
            subprocess.run(["sync", "--file-system", storage], check=True)
            values = {
                "redis.url": f"unix://{self.server.socket}", "storage.dir": storage,
                "filter.capacity": 2 * self.sizes.held, "filter.grow_to": 2 * self.sizes.held,
                "filter.error_rate": ERROR_RATE,
            }
            command = [program, "run", *(f"--set={key}={value}" for key, value in values.items())]
            waits_for_items = lambda: client.info("clients")["blocked_clients"]
            with running(command, waits_for_items) as daemon:
                served, used = self.served(), cpu_seconds(daemon.pid)
                begun = time.perf_counter()
                client.rename("waiting", SOURCE)
                is_done = lambda: not client.exists(SOURCE, OWN_KEYS[0])
                wait_until(is_done, "the source is not empty", 600)
                seconds = time.perf_counter() - begun
                served, used = self.served() - served, cpu_seconds(daemon.pid) - used
        came = client.llen(SINK)
        # The error rate permits very few losses.
        if not self.distinct - 1 - self.distinct * 1e-6 <= came <= self.distinct:
            raise RuntimeError(f"the sink has {came} items, and {self.distinct} are expected")
        self.add(case, self.sizes.items, seconds, served, used)

    def mover(self, case, *test, dump=None):
        """Lets benches/mover.rs move a copy of the stock. `dump` is a half-full filter for it."""
        self.server.client.delete(SOURCE, SINK, FILTER)
        if dump:
            self.server.client.restore(FILTER, 0, dump)
        self.server.client.copy(STOCK, SOURCE)
        words = [self.server.socket, SOURCE, SINK, BATCH, IN_FLIGHT, *test]
        command = [tools.build_bench("mover"), *map(str, words)]
        served = self.served()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        said = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status or not said["pushed"]:
            raise RuntimeError(f"the mover pushed {said['pushed']} items; its status is {status}")
        served = self.served() - served
        self.add(case, said["items"], said["seconds"], served, usage.ru_utime + usage.ru_stime)

    def scrapy_redis(self, case):
        """Moves URLs for some seconds with the filter of scrapy-redis, one at a time."""
        from scrapy import Request
        from scrapy_redis.dupefilter import RFPDupeFilter

        client = self.server.client
        client.delete(SOURCE, SINK, FILTER)
        client.rpush(SOURCE, *client.lrange(STOCK, 0, FEW - 1))
        with redis.Redis(unix_socket_path=str(self.server.socket)) as own:
            dupefilter, count = RFPDupeFilter(own, FILTER), 0
            served, used, begun = self.served(), time.process_time(), time.perf_counter()
            while time.perf_counter() - begun < self.sizes.seconds and (item := own.lpop(SOURCE)):
                if not dupefilter.request_seen(Request(item.decode())):
                    own.rpush(SINK, item)
                count += 1
            seconds = time.perf_counter() - begun
            self.add(case, count, seconds, self.served() - served, time.process_time() - used)

    def served(self):
        return cpu_seconds(self.server.process.pid)


def chunks(path):
    with open(path, "rb") as lines:
        while chunk := [line.rstrip(b"\n") for line in islice(lines, CHUNK)]:
            yield chunk


def half_full(folder, held, program=tools.URLSEEN):
    """Makes a storage folder with a half-full filter. Returns its path."""
    options = ["--capacity", 2 * held, "--grow-to", 2 * held, "--error-rate", ERROR_RATE]
    # The first run leaves a long log, because of which the second one takes a snapshot. Otherwise
    # the daemon would take it during a measurement.
    for count in (held, 1):
        command = [program, "filter", "--storage", folder, *options, tools.held(count)]
        tools.output(command, stderr=subprocess.DEVNULL)
    return folder


def redisbloom(server, held):
    """Returns a half-full filter of RedisBloom as a dump, with the same keys."""
    client = server.client
    # A filter that can grow would have half the error rate at first.
    client.execute_command("BF.RESERVE", FILTER, ERROR_RATE, 2 * held, "NONSCALING")
    for chunk in chunks(tools.held(held)):
        client.execute_command("BF.MADD", FILTER, *chunk)
    return client.dump(FILTER)


def run(sizes, figures):
    module, dump = (), None
    try:
        module = ("--loadmodule", tools.redisbloom())
    except Exception as why:  # noqa: BLE001
        figures.missing("list", "RedisBloom", why)
    with redis_server(*module) as server, tools.folder() as place:
        folder = half_full(place / "filter", sizes.held)
        if module:
            dump = redisbloom(server, sizes.held)
        for kind in ("tab", "url"):
            at = List(server, kind, sizes, figures)
            percent = round(100 * tools.UNSEEN)
            cases = {
                "urlseen": lambda case: at.daemon(case, folder),
                "mover": lambda case: at.mover(case, "push", percent),
            }
            if dump:
                # Of a tab item, only the fingerprint is added.
                test = ("redisbloom", FILTER, 40 if kind == "tab" else 0)
                cases["RedisBloom, BF.MADD"] = lambda case: at.mover(case, *test, dump=dump)
            if kind == "url":
                cases["scrapy-redis"] = at.scrapy_redis
            # This run does not count: the server takes memory from the system and keeps it.
            server.client.copy(STOCK, SINK)
            for case, measure in tools.in_turn(cases, sizes.rounds):
                measure(case)
    figures.facts |= {"items": sizes.items, "keys in the filter before": sizes.held}


def against(sizes, revision):
    """Compares the daemon with that of an earlier revision. Returns the number of slower rows.

    The earlier revision runs twice in each round. The difference between these runs is noise.
    """
    before, figures = tools.build_revision(revision), tools.Figures()
    programs = {"now": tools.URLSEEN, "before": before, "again": before}
    lost = 0
    with redis_server() as server, tools.folder() as place:
        folders = {
            name: half_full(place / name, sizes.held, program) for name, program in programs.items()
        }
        for kind in ("tab", "url"):
            at = List(server, kind, sizes, figures)
            cases = {
                name: partial(at.daemon, folder=folders[name], program=program)
                for name, program in programs.items()
            }
            for case, measure in tools.in_turn(cases, sizes.rounds):
                measure(case)
    print(f"{'':14}{'':16}{'now/before':>12}{'again/before':>14}")
    for group, unit in dict.fromkeys((group, unit) for group, _, unit in figures.values):
        of = {case: median(figures.values[group, case, unit]) for case in programs}
        sign = 1 if unit == "items/s" else -1
        now, again = ((of[case] / of["before"]) ** sign for case in ("now", "again"))
        is_steady = abs(again - 1) <= TOLERANCE
        word = "" if now >= 1 - TOLERANCE else "slower" if is_steady else "wavers"
        lost += word == "slower"
        print(f"{group:14}{unit:16}{now:12.3f}{again:14.3f}  {word}")
    return lost
