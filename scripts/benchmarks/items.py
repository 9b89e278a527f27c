"""The items that are moved, made once and kept: see benches/items.rs."""

import socket
import subprocess
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from . import programs
from .folders import CACHE

TAB, URL = "tab", "url"
CHUNK = 5000


@dataclass
class Items:
    """A file of items, one a line."""

    kind: str
    unseen: int
    count: int
    path: Path
    # How many different requests there are among them.
    distinct: int

    @property
    def mean_bytes(self):
        """Mean length of an item, without its line break."""
        return self.path.stat().st_size / self.count - 1

    @property
    def group(self):
        return f"{self.kind}, {self.unseen} % unseen"

    def load(self, socket_path, key):
        """Pushes them to a list."""
        with socket.socket(socket.AF_UNIX) as server, open(self.path, "rb") as lines:
            server.connect(str(socket_path))
            replies = server.makefile("rb")
            while chunk := list(islice(lines, CHUNK)):
                words = [b"RPUSH", key.encode(), *(item[:-1] for item in chunk)]
                parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
                server.sendall(b"*%d\r\n%s" % (len(words), b"".join(parts)))
                reply = replies.readline()
                if not reply.startswith(b":"):
                    raise RuntimeError(f"RPUSH: {reply!r}")


def make(kind, count, unseen):
    """So many items of a kind, of which `unseen` in a hundred are new."""
    path = CACHE / f"items-{kind}-{count}-{unseen}.txt"
    note = path.with_suffix(".distinct")
    if not note.exists() or not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [programs.build_bench("items"), kind, str(count), str(unseen)]
        with open(path, "wb") as out:
            made = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
        note.write_bytes(made.stderr)
    return Items(kind, unseen, count, path, int(note.read_text()))
