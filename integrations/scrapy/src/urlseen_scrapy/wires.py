"""Commands to several servers, or to several parts of a Redis Cluster, at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.exceptions import NoScriptError

from urlseen_scrapy.nodes import is_cluster
from urlseen_scrapy.wire import Away, Refused, Wire

if TYPE_CHECKING:
    from redis import Redis


class Question(NamedTuple):
    """Command, and the connection that sends it.

    `text` is the text of a script that the command calls by its hash.
    """

    wire: Wire
    words: tuple[bytes | str | int, ...]
    text: bytes = b""


class Wires:
    """Connections of one thread to the server of the client `server`.

    There is one connection for all keys. In a Redis Cluster, there is one for each key, because the
    keys of different partitions are on different nodes.
    """

    def __init__(self, server: Redis) -> None:
        self._server = server
        self._wires: dict[str, Wire] = {}

    def for_key(self, key: str) -> Wire:
        """Returns the connection to the server that has `key`. It does not connect yet."""
        name = key if is_cluster(self._server) else ""
        if name not in self._wires:
            self._wires[name] = self._make(key)
        return self._wires[name]

    def close(self) -> None:
        """Closes all connections. The next commands open new ones."""
        for wire in self._wires.values():
            wire.close()

    def _make(self, key: str) -> Wire:
        return Wire.of_client(self._server, key)


def try_all(questions: Iterable[Question]) -> list[Any]:
    """Sends all commands, and then waits for every answer.

    Returns the answers in the order of the commands. If a command fails, its `Away` or `Refused` is
    in place of its answer.
    """
    questions = list(questions)
    answers: list[Any] = []
    for question in questions:
        try:
            answers.append(question.wire.send(*question.words))
        except (Away, Refused) as error:
            answers.append(error)
    for index, (question, ticket) in enumerate(zip(questions, answers)):
        if not isinstance(ticket, Exception):
            try:
                answers[index] = question.wire.receive(ticket)
            except (Away, Refused) as error:
                answers[index] = error
    for index, (question, answer) in enumerate(zip(questions, answers)):
        if question.text and isinstance(getattr(answer, "__cause__", None), NoScriptError):
            try:
                answers[index] = question.wire.ask("EVAL", question.text, *question.words[2:])
            except (Away, Refused) as error:
                answers[index] = error
    return answers


def ask_all(questions: Iterable[Question]) -> list[Any]:
    """Sends all commands, waits for every answer, and returns the answers in order.

    If commands failed, raises the first `Away` or `Refused` after the last answer.
    """
    answers = try_all(questions)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
