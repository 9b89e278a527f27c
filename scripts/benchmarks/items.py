"""Items to move, made once and kept: see benches/items.rs."""

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
    """A file of items, one a line."""

    kind: str
    unseen: int
    count: int
    path: Path
    # Number of different requests among them.
    distinct: int

    @property
    def mean_bytes(self):
        """Mean length of an item, without its line break."""
        return self.path.stat().st_size / self.count - 1

    @property
    def group(self):
        return f"{self.kind}, {self.unseen} % unseen"

    def load(self, socket_path, key):
        """Pushes the items to a list."""
        with Wire(socket_path) as server, open(self.path, "rb") as lines:
            while chunk := [line[:-1] for line in islice(lines, CHUNK)]:
                server.ask(command("RPUSH", key, *chunk))


def edition():
    """Changes with the program that makes the items, so that kept items are made anew."""
    return f"{zlib.crc32((ROOT / 'benches/items.rs').read_bytes()):08x}"


def make(kind, count, unseen):
    """Makes `count` items of a kind, of which `unseen` in a hundred are new."""
    path = CACHE / f"items-{kind}-{count}-{unseen}-{edition()}.txt"
    note = path.with_suffix(".distinct")
    if not note.exists() or not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [programs.build_bench("items"), kind, str(count), str(unseen)]
        with open(path, "wb") as out:
            made = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
        note.write_bytes(made.stderr)
    return Items(kind, unseen, count, path, int(note.read_text()))
