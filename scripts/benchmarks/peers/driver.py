"""Peers that benches/peers.rs drives from Rust, as fast as possible."""

import json
import subprocess
from itertools import product

from .. import programs
from ..line import line
from . import bloom
from .loops import FILTER, SINK, SOURCE

GROUP = "peers, tuning"
BATCHES = (100, 1000, 5000)
IN_FLIGHT = (1, 2, 3)


def named(size):
    return "batches of {}, {} in flight".format(*size)


class Driver:
    """Peer that benches/peers.rs drives. `test` is its name there."""

    kind = "tab"

    def __init__(self, test, case, note):
        self.test, self.case, self.note = test, case, note
        self.batch, self.in_flight = BATCHES[0], IN_FLIGHT[0]

    def prepare(self, server):
        server.delete(FILTER)

    def tune(self, server, stock):
        """Measures all sizes, selects the best one, and returns a line for each size."""
        rates = dict.fromkeys(product(BATCHES, IN_FLIGHT), 0)
        # The better of two runs counts, because other work on the machine can only slow a run.
        for size in [*rates, *rates]:
            self.batch, self.in_flight = size
            items, seconds, _ = self.run(server, stock)
            rates[size] = max(rates[size], items / seconds)
        self.batch, self.in_flight = max(rates, key=rates.get)
        self.note += f"; {named((self.batch, self.in_flight))}, the best of {len(rates)}"
        return [
            line(GROUP, f"{self.case}, {named(size)}", "items/s", [rate])
            for size, rate in rates.items()
        ]

    def run(self, server, stock):
        """Moves a copy of the stock. Returns items, seconds, and nanoseconds of the server."""
        self.prepare(server)
        server.delete(SOURCE, SINK)
        server.client.copy(stock.key, SOURCE)
        sizes = [str(self.batch), str(self.in_flight)]
        command = [programs.build_bench("peers"), server.socket, SOURCE, SINK, FILTER, *sizes]
        served = server.processor_time()
        moved = subprocess.run(
            [*command, self.test], check=True, stdout=subprocess.PIPE, text=True
        )
        served = server.processor_time() - served
        moved = json.loads(moved.stdout)
        # The error rate of 1e-8 permits very few unseen items that count as seen.
        if not stock.distinct - 10 <= moved["unseen"] <= stock.distinct:
            raise RuntimeError(f"{moved['unseen']} items are unseen, {stock.distinct} are expected")
        return moved["items"], moved["seconds"], served


class RedisBloom(Driver):
    """RedisBloom, with as many fingerprints as the daemon's filter."""

    case = "RedisBloom, BF.MADD"

    def __init__(self, server, held):
        self.filter = bloom.Filter(server, held)
        note = f"RedisBloom {bloom.version(server)}; precomputed fingerprints; {self.filter.note}"
        super().__init__("redisbloom", self.case, note)

    def prepare(self, server):
        self.filter.restore()


def sets():
    """Returns the peers with Redis sets. The sets are empty at the start."""
    note = "precomputed fingerprints; a SADD for each item"
    return [
        Driver("set", "SADD pipelined, 40 hex digits", note),
        Driver("set-of-bytes", "SADD pipelined, 20 bytes", note),
    ]
