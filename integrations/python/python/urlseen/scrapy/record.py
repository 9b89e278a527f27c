"""SQLite database of a crawl in one process, and the filter that follows it."""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from urlseen import Filter, Options

#: Folder of the filter in the JOBDIR, and the database in this folder.
FOLDER, DATABASE = "urlseen", "queue.sqlite"

#: A row of `queue` is a waiting request, or one in work. `fresh` has the keys that the filter on the
#: disk may lack: pickled dictionaries with `False` for forgotten keys, in the order of the commits.
#: `counts` has how often limits had a change.
TABLES = """
CREATE TABLE IF NOT EXISTS queue
    (number INTEGER PRIMARY KEY, slot TEXT NOT NULL, held INTEGER NOT NULL, item BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS waiting ON queue (slot) WHERE held = 0;
CREATE INDEX IF NOT EXISTS held ON queue (held) WHERE held = 1;
CREATE TABLE IF NOT EXISTS fresh (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS counts (change BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""

EXPIRIES = """
CREATE TABLE IF NOT EXISTS expiries (key PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS times ON expiries (at);
"""

#: Maximum number of keys that are forgotten together.
DUE = 1000

Key = bytes | str
#: Number, slot and item of a request.
Row = tuple[int, str, bytes]


class Expiries:
    """Times at which keys are forgotten. A clock that is set back only delays this."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        #: A key may expire at this time, and none does before.
        self.next = 0.0
        db.executescript(EXPIRIES)

    def add(self, key: Key, seconds: float) -> None:
        """Adds a key that expires after this time."""
        at = time.time() + seconds
        self._db.execute("INSERT OR REPLACE INTO expiries VALUES (?, ?)", (key, at))
        self.next = min(at, self.next)

    def remove(self, keys: Iterable[Key]) -> None:
        """Removes forgotten keys."""
        self._db.executemany("DELETE FROM expiries WHERE key = ?", ((key,) for key in keys))

    def due(self) -> list[Key]:
        """Returns some of the keys whose time is over. The caller removes them."""
        now = time.time()
        first = "SELECT key, at FROM expiries ORDER BY at LIMIT ?"
        rows = self._db.execute(first, (DUE + 1,)).fetchall()
        keys = [key for key, at in rows[:DUE] if at <= now]
        self.next = math.inf if len(keys) == len(rows) else rows[len(keys)][1]
        return keys


class Record:
    """Queue and seen keys of a crawl, which agree after any crash.

    SQLite has the record, and the filter follows it: the filter gets keys only after SQLite has
    synced them to the disk, so it never knows a link that is in no queue. Until then, the keys are in
    memory and in the table `fresh`. `level` is SQLite's level of syncs for other commits.
    """

    def __init__(self, folder: Path, filter: Filter, level: str) -> None:
        self.db = sqlite3.connect(folder / DATABASE)
        self.filter = filter
        #: Time of the last commit, and of the last sync.
        self.committed = self.synced = time.monotonic()
        #: Keys that the filter lacks; `False` is a forgotten key.
        self.fresh: dict[Key, bool] = {}
        # Those of the open transaction.
        self._new: dict[Key, bool] = {}
        self._level = level
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA synchronous = {level}")
        self.db.executescript(TABLES)
        for (keys,) in self.db.execute("SELECT keys FROM fresh ORDER BY id"):
            self.fresh.update(pickle.loads(keys))
        # Requests in work go back into the queue.
        self.db.execute("UPDATE queue SET held = 0 WHERE held = 1")
        self.sync()
        self.commit()

    @property
    def is_open(self) -> bool:
        """`True` if there is something to commit."""
        return self.db.in_transaction or bool(self._new)

    def insert(self, rows: Iterable[Row]) -> None:
        """Adds waiting requests to the open transaction."""
        self.db.executemany("INSERT INTO queue VALUES (?, ?, 0, ?)", rows)

    def know(self, keys: Iterable[Key]) -> None:
        """Adds seen keys to the open transaction."""
        self._change(dict.fromkeys(keys, True))

    def forget(self, keys: Iterable[Key]) -> None:
        """Adds forgotten keys to the open transaction."""
        self._change(dict.fromkeys(keys, False))

    def _change(self, keys: dict[Key, bool]) -> None:
        self.fresh.update(keys)
        self._new.update(keys)

    def count(self, changes: list[bytes]) -> None:
        """Adds changes of the counts of limits to the open transaction."""
        insert = "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET number = number + 1"
        self.db.executemany(insert, ((change,) for change in changes))

    def knows(self, key: Key) -> bool:
        """Returns `True` if the key is seen."""
        is_seen = self.fresh.get(key)
        return key in self.filter if is_seen is None else is_seen

    def commit(self) -> None:
        """Commits the open transaction."""
        if self._new:
            self.db.execute("INSERT INTO fresh (keys) VALUES (?)", (pickle.dumps(self._new),))
            self._new = {}
        self.db.commit()
        self.committed = time.monotonic()

    def commit_synced(self) -> None:
        """Commits, and waits until the disk has everything that was ever committed."""
        self.commit()
        self.db.execute("PRAGMA synchronous = FULL")
        # A commit without a change would sync nothing.
        self.db.execute(
            "INSERT INTO notes VALUES ('syncs', 1) ON CONFLICT DO UPDATE SET value = value + 1"
        )
        self.commit()
        self.db.execute(f"PRAGMA synchronous = {self._level}")

    def sync(self) -> None:
        """Syncs all commits, and then gives the filter the keys that it lacks."""
        if self.fresh or self.committed > self.synced:
            self.commit_synced()
        if self.fresh:
            self.filter.add_many([key for key, is_seen in self.fresh.items() if is_seen])
            self.filter.forget_many([key for key, is_seen in self.fresh.items() if not is_seen])
            self.filter.save()
            # The next commit includes this. If it does not come, the filter gets the keys again.
            self.db.execute("DELETE FROM fresh")
            self.fresh = {}
        self.synced = time.monotonic()

    def close(self) -> None:
        """Closes database and filter as they are."""
        self.db.close()
        self.filter.close()


def payload(item: bytes) -> bytes:
    """Returns the request of an item, without the fingerprint and the flags before it."""
    # Only a fingerprint of a length that urlseen recognizes is before the request.
    return item if item.startswith((b"\x80", b"{")) else item.split(b"\t", 2)[2]


def recorded_spec(folder: Path) -> dict[str, str]:
    """Reads for which filter and fingerprints a folder was made."""
    spec: dict[str, str] = json.loads((folder / "header").read_text().partition("\n")[0])["spec"]
    return spec


def recorded_options(folder: Path) -> Options:
    """Reads how the fingerprints of a folder are computed."""
    spec = recorded_spec(folder)
    options: dict[str, Any] = {
        name: spec[f"fingerprint.{name}"]
        for name in Options.__annotations__
        if f"fingerprint.{name}" in spec
    }
    options["keep_fragments"] = options["keep_fragments"] == "true"
    return cast(Options, options)
