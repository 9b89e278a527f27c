"""Consumer: the part that a spider process has in its crawl in Redis."""

from __future__ import annotations

import os
import re
import secrets
import socket
from typing import TYPE_CHECKING, Any

from urlseen_scrapy.reject import write_reject
from urlseen_scrapy.scripts import BEAT, COUNT, FINISH, POP, REJECT, REQUEUE

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from urlseen_scrapy.keys import CrawlKeys
    from urlseen_scrapy.record import Record
    from urlseen_scrapy.wire import Wire

#: Number of attempts to count the waiting requests while consumers come and go.
COUNT_TRIES = 5


def consumer_name(settings: BaseSettings) -> str:
    """Returns the configured name and a random suffix, so that no two processes share one."""
    name = str(settings.get("URLSEEN_CONSUMER") or f"{socket.gethostname()}-{os.getpid()}")
    if not re.fullmatch(r"[^\s#]+", name):
        raise ValueError(f"URLSEEN_CONSUMER is {name!r}; it may hold neither spaces nor #")
    return f"{name}#{secrets.token_hex(8)}"


class Producer:
    """Pushes to the source of a crawl for which no daemon has run yet."""

    def __init__(self, wire: Wire, source: str) -> None:
        self._wire = wire
        self._source = source

    def push(self, items: list[bytes]) -> None:
        """Pushes items to the source. A repeated call pushes them twice."""
        self._wire.ask(self._command, self._source, *items)

    @property
    def _command(self) -> str:
        return "RPUSH"


class Consumer(Producer):
    """Pops requests of one crawl, holds them, and acknowledges them.

    Each method except `count` is one round trip, and raises `Away` or `Refused` if it fails.
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

    def pop(self, number: int) -> bytes | None:
        """Pops the next request as `SCORE COUNT BYTES`, and holds it as delivery `number`.

        The same number gets the same request until it is finished. Returns `None` if there is no
        request, and `b"full"` if this consumer holds as many as it may.
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
        )
        return answer

    @property
    def _command(self) -> str:
        return self.record.push

    def finish(self, number: int, items: list[bytes]) -> bool:
        """Acknowledges a delivery and pushes its links. `False` if others have it by now."""
        keys = [self.record.source, self._held, self._keys.requeues]
        return bool(FINISH.run(self._wire, keys, self.record.push, number, *items))

    def reject(self, number: int, item: bytes, reason: str) -> bool:
        """Moves a delivery to the rejects. `False` if others have it by now."""
        return self._reject(self._held, str(number), item, reason)

    def give_back(self, numbers: list[int]) -> None:
        """Requeues deliveries of this consumer."""
        self._requeue(self.name, "", *numbers)

    def leave(self) -> int:
        """Requeues all that this consumer holds, and removes its entry."""
        done, *_ = self._requeue(self.name, "")
        return int(done)

    def beat(self, wire: Wire | None = None) -> list[int]:
        """Increments the heartbeat. Returns the deliveries that Redis holds for this consumer."""
        found = BEAT.run(wire or self._wire, [self._keys.consumers, self._held], self.name)
        return [int(number) for number in found]

    def heartbeats(self) -> dict[str, str]:
        """Returns each consumer with its heartbeat."""
        flat = [part.decode() for part in self._wire.ask("HGETALL", self._keys.consumers)]
        return dict(zip(flat[::2], flat[1::2]))

    def reclaim(self, other: str, heartbeat: str) -> tuple[int, int]:
        """Requeues what a stopped consumer held. Returns how many it requeued and rejected."""
        answer = self._requeue(other, heartbeat)
        if answer == b"alive":
            return 0, 0
        done, *too_often = answer
        held = self._keys.held(other)
        for number, value, before in zip(too_often[::3], too_often[1::3], too_often[2::3]):
            _, count, item = value.split(b" ", 2)
            consumers = ", ".join([*before.decode().split(), other])
            reason = (
                f"delivered {int(count) + 1} times, and each time its consumer stopped before it"
                f" was finished: {consumers}"
            )
            self._reject(held, number.decode(), item, reason)
        if too_often:
            self._requeue(other, heartbeat)
        return int(done), len(too_often) // 3

    def count(self) -> int:
        """Counts, at one moment, the requests that wait, are on their way or are held."""
        record = self.record
        for _ in range(COUNT_TRIES):
            held = [self._keys.held(name.decode()) for name in self._known]
            keys = [record.source, record.processing, record.sink, self._keys.consumers, *held]
            answer = COUNT.run(self._wire, keys, record.sink_kind, *self._known)
            if not isinstance(answer, list):
                return int(answer)
            self._known = answer
        # A crawl whose consumers come and go is not idle.
        return 1

    def forget(self, fingerprints: list[bytes]) -> None:
        """Asks urlseen to let fingerprints pass once more."""
        self._wire.ask("RPUSH", self.record.forget, *fingerprints)

    def source_len(self) -> int:
        """Returns the number of items in the source."""
        return int(self._wire.ask("LLEN", self.record.source))

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

    def _reject(self, held: str, number: str, item: bytes, reason: str) -> bool:
        keys = [held, self._keys.requeues, self.record.rejects, self._keys.oversize]
        json, is_oversize = write_reject(item, reason)
        return bool(REJECT.run(self._wire, keys, number, json, int(is_oversize)))
