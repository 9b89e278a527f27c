"""Items for the measurements. benches/items.rs makes them once, and they are kept."""

import subprocess
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from . import programs
from .folders import CACHE, ROOT
from .wire import Wire, command

TAB, URL = "tab", "url"
CHUNK = 5000


@dataclass
class Items:
    """File of items, one item a line."""

    kind: str
    unseen: int
    count: int
    path: Path
    # Number of different requests among them.
    distinct: int

    @property
    def mean_bytes(self):
        """Mean number of bytes of an item, without its line break."""
        return self.path.stat().st_size / self.count - 1

    @property
    def group(self):
        return f"{self.kind}, {self.unseen} % unseen"

    def chunks(self):
        """Yields the items, some thousands at a time."""
        with open(self.path, "rb") as lines:
            while chunk := [line[:-1] for line in islice(lines, CHUNK)]:
                yield chunk

    def load(self, socket_path, key):
        """Pushes the items to a list."""
        with Wire(socket_path) as server:
            for chunk in self.chunks():
                server.ask(command("RPUSH", key, *chunk))


def edition():
    """Returns a checksum of the program that makes the items. A change makes kept items invalid."""
    return f"{zlib.crc32((ROOT / 'benches/items.rs').read_bytes()):08x}"


def make(kind, count, unseen):
    """Makes `count` items of a kind, of which `unseen` percent are new."""
    path = CACHE / f"items-{kind}-{count}-{unseen}-{edition()}.txt"
    note = path.with_suffix(".distinct")
    if not note.exists() or not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [programs.build_bench("items"), kind, str(count), str(unseen)]
        with open(path, "wb") as out:
            made = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
        note.write_bytes(made.stderr)
    return Items(kind, unseen, count, path, int(note.read_text()))
