"""Lua scripts that consumers run in Redis. The daemon has the same files."""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files
from typing import Any

from urlseen_scrapy.wire import Wire
from urlseen_scrapy.wires import Question, ask_all


class Script:
    """Lua script that is called by its hash, or by its text if the server does not have it.

    `name` is the name of a file in `lua`. Set `uses_sink` if the script calls functions of
    `sink.lua`.
    """

    def __init__(self, name: str, *, uses_sink: bool = False) -> None:
        parts = ["common", "sink", name] if uses_sink else ["common", name]
        folder = files("urlseen_scrapy") / "lua"
        self._text = b"\n".join((folder / f"{part}.lua").read_bytes() for part in parts)
        self._hash = sha1(self._text, usedforsecurity=False).hexdigest()

    def call(self, wire: Wire, keys: list[str], *arguments: bytes | str | int) -> Question:
        """Returns the command that runs the script."""
        return Question(wire, ("EVALSHA", self._hash, len(keys), *keys, *arguments), self._text)

    def run(self, wire: Wire, keys: list[str], *arguments: bytes | str | int) -> Any:
        """Runs the script and returns its answer.

        Raises `Away` if Redis does not answer, and `Refused` if the script fails.
        """
        return ask_all([self.call(wire, keys, *arguments)])[0]


POP = Script("pop", uses_sink=True)
FINISH = Script("finish")
BEAT = Script("beat")
REQUEUE = Script("requeue", uses_sink=True)
REJECT = Script("reject")
COUNT = Script("count")
