"""The command `python -m urlseen.scrapy`, for the JOBDIR of a crawl in one process."""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from urlseen._urlseen import Address, Away, Consumer, Filter, Refused
from urlseen.scrapy.record import (
    DATABASE,
    FOLDER,
    Record,
    payload,
    recorded_options,
    recorded_spec,
)

#: Number of requests in one push.
BATCH = 500


def show(folder: Path) -> None:
    """Prints each request of the queue, those in work first."""
    with closing(sqlite3.connect(f"{(folder / DATABASE).as_uri()}?mode=ro", uri=True)) as db:
        rows = "SELECT held, item FROM queue ORDER BY held DESC, slot, number DESC"
        for held, item in db.execute(rows):
            data = payload(item)
            fields = pickle.loads(data) if data.startswith(b"\x80") else json.loads(data)
            state = "in work" if held else "waiting"
            print(state, fields["priority"], fields["method"], fields["url"], sep="\t")


def move(folder: Path, url: str, source: str) -> None:
    """Pushes the queue to the source of a daemon. Its filter lets these requests pass once more.

    A kill loses no request. If the command is repeated, it pushes none twice.
    """
    opened = Filter.open(folder, **recorded_options(folder))
    consumer = Consumer(Address(url, 10, 10), source, None, [], 1)
    number = 0
    with closing(Record(folder, opened, "full")) as record:
        rows = "SELECT number, item FROM queue ORDER BY number DESC LIMIT ?"
        while batch := record.db.execute(rows, (BATCH,)).fetchall():
            first, last = batch[0][0], batch[-1][0]
            name = hashlib.sha1(repr(batch).encode()).hexdigest()
            consumer.push_once(name, [let_pass(item) for _, item in batch])
            record.db.execute("DELETE FROM queue WHERE number BETWEEN ? AND ?", (last, first))
            record.commit()
            number += len(batch)
    consumer.leave(0)
    print(f"pushed {number} requests to {source}. Start the daemon with these settings:")
    print(f'storage.dir = "{folder}"')
    print(f"filter.grow_to = {recorded_spec(folder)['filter.grow_to']}")
    # A header leaves the newest form out.
    for option, value in {"canonical": "w3lib-2.5", **recorded_options(folder)}.items():
        if option != "same":
            print(f"fingerprint.{option} = {json.dumps(value)}")


def let_pass(item: bytes) -> tuple[str, bytes]:
    """Returns the fingerprint of an item, and the item with the flag `dont_filter`."""
    found = re.match(rb"([0-9a-f]+)\t(&[^\t]*)\t", item)
    if found is None:
        # The fingerprint of such an item is a field of the request.
        fingerprint = hashlib.sha1(item).hexdigest()
        return fingerprint, fingerprint.encode() + b"\t&dont_filter\t" + item
    flags = found[2] if b"dont_filter" in found[2] else found[2].rstrip(b"&") + b"&dont_filter"
    return found[1].decode(), b"\t".join([found[1], flags, item[found.end() :]])


def main() -> None:
    """Runs the command with the arguments of this process."""
    parser = argparse.ArgumentParser(prog="python -m urlseen.scrapy", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="print the requests in work, and those that wait")
    moving = commands.add_parser("move", help="push the queue to the source of a daemon")
    for each in (listing, moving):
        each.add_argument("jobdir", type=Path, metavar="JOBDIR")
    moving.add_argument("url", metavar="URL", help="address of Redis, like redis://127.0.0.1:6379")
    moving.add_argument("source", metavar="SOURCE", help="source.key, like demo:discovered")
    words = parser.parse_args()
    folder = words.jobdir.resolve() / FOLDER
    try:
        if not (folder / DATABASE).exists():
            raise FileNotFoundError(f"{folder} has no {DATABASE}: no crawl used this JOBDIR")
        if words.command == "list":
            show(folder)
        else:
            move(folder, words.url, words.source)
    except (Away, Refused, OSError, ValueError, RuntimeError, sqlite3.Error) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
