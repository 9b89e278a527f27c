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
    with closing(Record(folder, opened, "full")) as record, closing(consumer):
        rows = "SELECT number, item FROM queue ORDER BY number DESC LIMIT ?"
        while batch := record.db.execute(rows, (BATCH,)).fetchall():
            first, last = batch[0][0], batch[-1][0]
            name = hashlib.sha1(repr(batch).encode()).hexdigest().encode()
            items: dict[int, list[bytes]] = {}
            for _, item in batch:
                passed, fingerprint = let_pass(item)
                items.setdefault(consumer.partition_of(fingerprint), []).append(passed)
            push(consumer, items, name)
            record.db.execute("DELETE FROM queue WHERE number BETWEEN ? AND ?", (last, first))
            record.commit()
            number += len(batch)
        consumer.leave()
    print(f"pushed {number} requests to {source}. Start the daemon with these settings:")
    print(f'storage.dir = "{folder}"')
    print(f"filter.grow_to = {recorded_spec(folder)['filter.grow_to']}")
    # A header leaves the newest form out.
    for option, value in {"canonical": "w3lib-2.5", **recorded_options(folder)}.items():
        if option != "same":
            print(f"fingerprint.{option} = {json.dumps(value)}")


def let_pass(item: bytes) -> tuple[bytes, str]:
    """Returns an item with the flag `dont_filter`, and its fingerprint."""
    found = re.match(rb"([0-9a-f]+)\t(&[^\t]*)\t", item)
    if found is None:
        # The fingerprint of such an item is a field of the request.
        fingerprint = hashlib.sha1(item).hexdigest()
        return fingerprint.encode() + b"\t&dont_filter\t" + item, fingerprint
    flags = found[2] if b"dont_filter" in found[2] else found[2].rstrip(b"&") + b"&dont_filter"
    return b"\t".join([found[1], flags, item[found.end() :]]), found[1].decode()


def push(consumer: Consumer, items: dict[int, list[bytes]], name: bytes) -> None:
    """Pushes a batch to the partitions, unless it was the last one that was pushed.

    Raises the first error, and `RuntimeError` if another process moves a crawl to the same source.
    """
    for partition, data in items.items():
        source = consumer.sources[partition]
        tag = source if "{" in source else f"{{{source}}}"
        key, moved = source.encode(), f"urlseen:{tag}:moved".encode()
        # A transaction also writes the name if the source is no list, so `LLEN` comes before it.
        before = [b"WATCH", moved], [b"LLEN", key], [b"GET", moved]
        if ask(consumer, partition, *before) == name:
            continue
        pushes = [b"RPUSH", key, *data], [b"SET", moved, name, b"EX", b"604800"]
        if ask(consumer, partition, [b"MULTI"], *pushes, [b"EXEC"]) is None:
            raise RuntimeError(f"another process has pushed to {source}; give the command again")


def ask(consumer: Consumer, partition: int, *commands: list[bytes]) -> object:
    """Sends commands to a partition. Returns the last answer, or raises the first error."""
    answers = consumer.ask([(partition, command) for command in commands])
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers[-1]


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
