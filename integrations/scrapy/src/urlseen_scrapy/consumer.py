"""Calls by which a spider process pushes, pops and acknowledges the requests of its crawl."""

from __future__ import annotations

import os
import re
import secrets
import socket
from typing import TYPE_CHECKING, Any

from urlseen_scrapy.reject import write_reject
from urlseen_scrapy.scripts import BEAT, COUNT, FINISH, POP, REJECT, REQUEUE
from urlseen_scrapy.wires import Question

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from urlseen_scrapy.keys import CrawlKeys
    from urlseen_scrapy.record import Record
    from urlseen_scrapy.wire import Wire

#: Commands that count the requests in a sink, by its kind.
LENGTHS = {"list": "LLEN", "zset": "ZCARD"}


def consumer_name(settings: BaseSettings) -> str:
    """Returns the name of this process among the consumers of the crawl: `NAME#RANDOM`.

    NAME is the setting `URLSEEN_CONSUMER`, or else the host name and the process id. RANDOM makes
    the name unique. Raises `ValueError` if the setting has a space or a `#`.
    """
    name = str(settings.get("URLSEEN_CONSUMER") or f"{socket.gethostname()}-{os.getpid()}")
    if not re.fullmatch(r"[^\s#]+", name):
        raise ValueError(f"URLSEEN_CONSUMER is {name!r}; it may contain neither spaces nor #")
    return f"{name}#{secrets.token_hex(8)}"


class Producer:
    """Pushes items to the source of a partition that has no crawl record yet."""

    def __init__(self, wire: Wire, source: str) -> None:
        self._wire = wire
        self._source = source

    def push(self, items: list[bytes]) -> Question:
        """Returns the command that pushes items to the source. Repeated, it pushes them again."""
        return Question(self._wire, (self._command, self._source, *items))

    def source_len(self) -> Question:
        """Returns the command that counts the items in the source."""
        return Question(self._wire, ("LLEN", self._source))

    @property
    def _command(self) -> str:
        return "RPUSH"


class Consumer(Producer):
    """Pops requests of one partition, holds them, and acknowledges them.

    A popped request is a *delivery*. Redis holds the delivery for this consumer, under a number
    that the caller chooses, until the consumer acknowledges, rejects or requeues it.

    Some methods return a command, so that the caller can send the commands of several partitions at
    the same time. All others raise `Away` if Redis does not answer, and `Refused` if Redis refuses
    the call. All calls except `push` are safe to repeat. `reclaim` may take several round trips.
    """

    def __init__(
        self, wire: Wire, keys: CrawlKeys, record: Record, name: str, held_max: int
    ) -> None:
        super().__init__(wire, record.source)
        self.name = name
        self.record = record
        self._keys = keys
        self._held = keys.held(name)
        self._held_max = held_max
        self._known: list[bytes] = []

    def pop(self, number: int, *, holds_others: bool = False) -> bytes | None:
        """Pops the next request, and holds it as delivery `number`.

        `holds_others` says that this process holds any other request.
        Returns `SCORE COUNT ITEM`. SCORE is the score of the item in a sorted set, and 0 in a list.
        COUNT is the number of earlier deliveries whose consumer stopped before the page was done.
        Returns `None` if the sink is empty, `b"full"` if this consumer holds `held_max` deliveries,
        and `b"suspect"` if the next request is a suspect and must wait for the others. A repeated call with the same number returns the same request until the delivery
        is finished.
        """
        record = self.record
        answer: bytes | None = POP.run(
            self._wire,
            [record.sink, self._keys.consumers, self._held, self._keys.requeues],
            record.sink_kind,
            record.pop,
            self.name,
            number,
            self._held_max,
            self.record.suspect if holds_others else "",
        )
        return answer

    @property
    def _command(self) -> str:
        return self.record.push

    def finish(self, number: int, items: list[bytes]) -> bool:
        """Acknowledges a delivery, and pushes the links of its page to the source, in one step.

        Returns `False` and pushes nothing if this consumer no longer holds the delivery. Then the
        delivery was requeued meanwhile, or an earlier call has acknowledged it.
        """
        keys = [self.record.source, self._held, self._keys.requeues]
        return bool(FINISH.run(self._wire, keys, self.record.push, number, *items))

    def reject(self, number: int, item: bytes, reason: str) -> bool:
        """Moves a delivery to the rejects. Returns `False` if this consumer no longer holds it."""
        return self._reject(self._held, str(number), item, reason)

    def give_back(self, numbers: list[int]) -> None:
        """Requeues the deliveries of this consumer that have these numbers."""
        self._requeue(self.name, "", *numbers)

    def leave(self) -> int:
        """Requeues all deliveries of this consumer, and removes the consumer from the crawl.

        Returns the number of requeued deliveries.
        """
        answer = self._requeue(self.name, "")
        return int(answer[0]) if isinstance(answer, list) else 0

    def beat(self, wire: Wire | None = None) -> list[int]:
        """Renews the heartbeat. Returns the deliveries that Redis holds for this consumer.

        A thread other than the reactor's must pass its own connection as `wire`.
        """
        found = BEAT.run(wire or self._wire, [self._keys.consumers, self._held], self.name)
        return [int(number) for number in found]

    def heartbeats(self) -> dict[str, str]:
        """Returns the heartbeat of each consumer, by the name of the consumer."""
        flat = [
            part.decode(errors="replace")
            for part in self._wire.ask("HGETALL", self._keys.consumers)
        ]
        return dict(zip(flat[::2], flat[1::2]))

    def reclaim(self, other: str, heartbeat: str) -> tuple[int, int]:
        """Requeues the deliveries of the consumer `other`, which has stopped.

        Does nothing if the heartbeat of `other` is no longer `heartbeat`, because then `other` is
        alive, or if another program wrote the key of the held requests. A request that was delivered `held.deliveries` times goes to the rejects instead.
        Returns two numbers: requeued deliveries, and rejected deliveries.
        """
        answer = self._requeue(other, heartbeat)
        if not isinstance(answer, list):
            return 0, 0
        done, *too_often = answer
        held = self._keys.held(other)
        for number, value, before in zip(too_often[::3], too_often[1::3], too_often[2::3]):
            found = re.fullmatch(rb"\S+ (\d+) (.*)", value, re.DOTALL)
            # The score of a request that was not delivered too often is not a number.
            if found and int(found[1]) + 1 >= int(self.record.deliveries):
                count, item = int(found[1]), found[2]
                consumers = ", ".join([*before.decode().split(), other])
                reason = (
                    f"delivered {count + 1} times and never finished (consumers: {consumers}):"
                    " its page may crash the consumer. Requeue it after the consumer is repaired"
                )
            else:
                item = value
                reason = (
                    "the held value is not of the form SCORE COUNT ITEM: another program wrote it"
                )
            self._reject(held, number, item, reason)
        if too_often:
            self._requeue(other, heartbeat)
        return int(done), len(too_often) // 3

    def count(self) -> Question:
        """Returns the command that counts the requests in source, urlseen and sink, plus all held
        requests. A script in Redis counts all of them at one moment.
        """
        record = self.record
        held = [self._keys.held(name.decode(errors="replace")) for name in self._known]
        keys = [record.source, record.processing, record.sink, self._keys.consumers, *held]
        return COUNT.call(self._wire, keys, record.sink_kind, *self._known)

    def counted(self, answer: Any) -> int | None:
        """Reads the answer to `count`. Returns `None` if consumers have joined or left since the
        last count. Then the next count includes them.
        """
        if not isinstance(answer, list):
            return int(answer)
        self._known = answer
        return None

    def sink_len(self) -> Question:
        """Returns the command that counts the requests in the sink."""
        record = self.record
        return Question(self._wire, (LENGTHS[record.sink_kind], record.sink))

    def forget(self, fingerprints: list[bytes]) -> Question:
        """Returns the command that asks urlseen to let fingerprints (hex digits) pass once more."""
        return Question(self._wire, ("RPUSH", self.record.forget, *fingerprints))

    def _requeue(self, consumer: str, heartbeat: str, *numbers: int) -> Any:
        record, keys = self.record, self._keys
        return REQUEUE.run(
            self._wire,
            [record.sink, keys.consumers, keys.held(consumer), keys.requeues],
            record.sink_kind,
            record.pop,
            consumer,
            heartbeat,
            record.deliveries,
            *numbers,
        )

    def _reject(self, held: str, number: bytes | str, item: bytes, reason: str) -> bool:
        keys = [held, self._keys.requeues, self.record.rejects]
        return bool(REJECT.run(self._wire, keys, number, write_reject(item, reason)))
