"""Filter of the RedisBloom module."""

import subprocess
from itertools import islice

from .. import programs
from ..wire import Wire, command
from .loops import FILTER
from .packages import Missing
from .size import CAPACITY, ERROR_RATE

CHUNK = 10_000


def version(server):
    """Returns the version of the module, for example `2.8.2`."""
    for module in server.client.execute_command("MODULE", "LIST"):
        facts = dict(zip(module[::2], module[1::2]))
        if facts[b"name"] == b"bf":
            number = facts[b"ver"]
            return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"
    raise Missing("the server has no RedisBloom")


def reserve(server, capacity=CAPACITY):
    """Makes a filter that cannot grow. A filter that can grow has half the error rate at first."""
    server.client.execute_command("BF.RESERVE", FILTER, ERROR_RATE, capacity, "NONSCALING")


class Filter:
    """Filter with `held` fingerprints that no item has. `restore` makes a copy for each run."""

    def __init__(self, server, held):
        self.server = server
        version(server)
        server.delete(FILTER)
        reserve(server)
        self.fill(held)
        self.chunks = self.dump()
        self.note = f"filter for {CAPACITY:,} keys at {ERROR_RATE:g}, NONSCALING, with {held:,} keys"

    def fill(self, held):
        others = [programs.build_bench("items"), "other", str(held)]
        items = subprocess.Popen(others, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with Wire(self.server.socket) as wire:
            # Replies are off, because reading them would take longer than the additions.
            wire.send(command("CLIENT", "REPLY", "OFF"))
            while chunk := [item[:-1] for item in islice(items.stdout, CHUNK)]:
                wire.send(command("BF.MADD", FILTER, *chunk))
            wire.ask(command("CLIENT", "REPLY", "ON"))
        holds = self.server.client.execute_command("BF.INFO", FILTER, "ITEMS")[0]
        if items.wait() != 0 or holds < held * 0.999_999:
            raise RuntimeError(f"the filter holds {holds} items; {held} were added")

    def dump(self):
        chunks, iterator = [], 0
        while True:
            ask = self.server.client.execute_command
            iterator, data = ask("BF.SCANDUMP", FILTER, iterator)
            if iterator == 0:
                return chunks
            chunks.append((iterator, data))

    def restore(self):
        self.server.delete(FILTER)
        for iterator, data in self.chunks:
            self.server.client.execute_command("BF.LOADCHUNK", FILTER, iterator, data)
