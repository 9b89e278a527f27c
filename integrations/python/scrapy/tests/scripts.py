"""Lua scripts of held requests, as other programs run them."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "crates/redis/src/protocol"


def text(name: str) -> bytes:
    """Returns the text of a script, as docs/reference/held.md describes it."""
    parts = [FOLDER / "common.lua", FOLDER / f"{name}.lua"]
    lines = b"\n".join(part.read_bytes() for part in parts).splitlines()
    # urlseen sends no comments and no indentation.
    return b"\n".join(
        line.lstrip() for line in lines if line and not line.lstrip().startswith(b"--")
    )


SCRIPTS = {name: text(name) for name in ("pop", "requeue", "finish", "beat", "count")}
#: Names by which Redis knows the scripts.
HASHES = {name: sha1(text).hexdigest().encode() for name, text in SCRIPTS.items()}


def prefix(source: str) -> str:
    """Returns the beginning of the keys of the crawl that reads `source`."""
    return f"urlseen:{source}" if "{" in source else f"urlseen:{{{source}}}"


def _run(server, name, consumer, *words, source="demo:discovered"):
    tag = prefix(source)
    record = server.client.hgetall(f"{tag}:crawl")
    keys = [record[b"sink"], f"{tag}:consumers", f"{tag}:held:{consumer}", f"{tag}:requeues"]
    first = (record[b"sink_kind"], record[b"pop"], consumer)
    return server.client.eval(SCRIPTS[name], len(keys), *keys, *first, *words)


def pop(server, consumer: str, number: int) -> bytes:
    """Pops a request for a consumer, as a late command of this consumer does."""
    return _run(server, "pop", consumer, number, 1000, "")


def give_back(server, consumer: str, *numbers: int, source: str = "demo:discovered") -> None:
    """Requeues deliveries of a consumer, so that another one gets them."""
    _run(server, "requeue", consumer, "", 3, *numbers, source=source)
