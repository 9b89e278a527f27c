"""Partitions of a crawl, as one spider process uses them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from urlseen._urlseen import Away, Consumer, Refused

from urlseen_scrapy.delivery import Delivery
from urlseen_scrapy.nodes import address_of, check_slots
from urlseen_scrapy.record import Fit, check_record, keys_of
from urlseen_scrapy.settings import held_max, partitions

if TYPE_CHECKING:
    from redis import Redis
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger("urlseen_scrapy")

#: Minimum number of seconds between the messages that a partition is away and that it answers again.
CALM_S = 2.0
#: Commands that count the requests in a sink, by its kind.
LENGTHS = {"list": b"LLEN", "zset": b"ZCARD"}


class SourceItem(NamedTuple):
    """Item on its way to the source of the partition with this number."""

    partition: int
    data: bytes


class Partitions(Consumer):
    """Consumer of the requests of this spider's partitions, and producer for all partitions.

    The constructor reads the partition table of the crawl that has the key `source`, and the crawl
    records. It raises `Away` if a partition does not answer. All other methods raise `Away` only if
    no partition answers, except `leave`, `finish` and `reject`. All methods raise `Refused` if Redis
    refuses a command, and `ValueError` if a setting does not fit a record or the table has changed.

    A thread of the consumer sends heartbeats, reads the records again, and requeues deliveries that
    this process lacks and those of stopped consumers.
    """

    def __new__(cls, crawler: Crawler, server: Redis, source: str, fit: Fit) -> Self:
        settings = crawler.settings
        name = settings.get("URLSEEN_CONSUMER")
        return super().__new__(
            cls,
            address_of(server),
            source,
            None if name is None else str(name),
            partitions(settings),
            held_max(settings),
        )

    def __init__(self, crawler: Crawler, server: Redis, source: str, fit: Fit) -> None:
        #: Unfinished deliveries of this process.
        self.open: dict[Delivery, None] = {}
        self.source = source
        #: Crawl record of each partition, or `None` if no urlseen has run for it yet.
        self.records: list[dict[str, str] | None] = [None for _ in self.sources]
        self._crawler = crawler
        self._server = server
        self._fit = fit
        self._changes = 0
        # Partitions of which this process has said that they are away, and the time.
        self._away: dict[int, float] = {}
        try:
            if len(self.sources) == 1:
                check_slots(server, {"URLSEEN_SOURCE_KEY": source, fit.sink_setting: fit.sink})
            self._check_records()
            self._check_types()
        except BaseException:
            with suppress(Away, Refused):
                self.leave()
            raise

    @property
    def missing(self) -> list[int]:
        """Numbers of the partitions that have no crawl record."""
        return [number for number, record in enumerate(self.records) if record is None]

    def address(self, fingerprint: bytes, data: bytes) -> SourceItem:
        """Returns an item for the partition to which its fingerprint belongs."""
        return SourceItem(self.partition_of(fingerprint.hex()), data)

    def refresh(self) -> None:
        """Checks that table and records still fit, and reads the records that were missing."""
        if self.missing:
            self.read_missing()
        self._check_records()
        if len(self.sources) > 1:
            self._say_who_is_away()

    def push(self, items: dict[int, list[bytes]]) -> list[object]:
        """Pushes items to their partitions. An `Away` or `Refused` is in place of an answer.

        Repeated, the method pushes them again.
        """
        commands: list[tuple[int | None, list[bytes]]] = []
        for number, data in items.items():
            record = self.records[number] or {}
            command = record.get("push", "RPUSH").encode()
            commands.append((number, [command, self.sources[number].encode(), *data]))
        return self.ask(commands)

    def forget(self, fingerprints: dict[int, list[bytes]]) -> list[object]:
        """Asks urlseen to let fingerprints (hex digits) pass once more. Returns what `push` does."""
        keys = {number: (self.records[number] or {})["forget"] for number in fingerprints}
        return self.ask(
            [
                (number, [b"RPUSH", keys[number].encode(), *data])
                for number, data in fingerprints.items()
            ]
        )

    def pop(self) -> Delivery | None:
        """Pops the next request and holds it.

        Returns `None` if the sinks are empty or a suspect must be held alone. Raises `Full` if this
        process holds its maximum.
        """
        held = super().pop()
        if held is None:
            return None
        delivery = Delivery(held)
        self.open[delivery] = None
        return delivery

    def count(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests.

        Returns 1 if consumers pop or beat during every attempt, or if a partition is away.
        """
        try:
            return self._missing_len() + super().count()
        except Away:
            if self.is_away():
                raise
            return 1

    def _missing_len(self) -> int:
        """Counts the requests of the partitions that have no crawl record."""
        fit = self._fit
        questions: list[tuple[int | None, list[bytes]]] = []
        for number in self.missing:
            sink = fit.sink + self._suffix(number)
            questions.append((number, [b"LLEN", self.sources[number].encode()]))
            questions.append((number, [LENGTHS[fit.sink_kind], sink.encode()]))
        total: int = sum(self._ask(questions))
        # A daemon that began meanwhile may hold items that are in neither source nor sink.
        if questions:
            self.refresh()
        return total

    def _suffix(self, number: int) -> str:
        return self.sources[number].removeprefix(self.source)

    def _check_records(self) -> None:
        """Compares changed records with the settings."""
        changes = self.changes()
        if changes == self._changes:
            return
        records = self.read_records()
        for number, record in enumerate(records):
            if record is not None and record != self.records[number]:
                check_record(record, self._crawler, self._fit, self._suffix(number))
                check_slots(self._server, keys_of(record))
        self.records, self._changes = records, changes

    def _check_types(self) -> None:
        """Raises `ValueError` if a source or a sink in Redis has another type."""
        fit = self._fit
        keys = (
            ("URLSEEN_SOURCE_KEY", self.source, "list"),
            (fit.sink_setting, fit.sink, fit.sink_kind),
        )
        for setting, key, kind in keys:
            names = [key + self._suffix(number) for number in range(len(self.sources))]
            types = self._ask(
                (number, [b"TYPE", each.encode()]) for number, each in enumerate(names)
            )
            for name, found in zip(names, types):
                if found.decode() not in ("none", kind):
                    raise ValueError(
                        f"{setting}: Redis holds a {found.decode()} in {name}, and"
                        f" {fit.component} needs a {kind}. PriorityQueue needs sink.kind ="
                        ' "zset" in urlseen\'s config, FifoQueue and SendDiscovered need "list"'
                    )

    def _ask(self, questions: Iterable[tuple[int | None, list[bytes]]]) -> list[Any]:
        """Sends commands to partitions, and returns all answers. Raises the first error."""
        answers: list[Any] = self.ask(list(questions))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def _say_who_is_away(self) -> None:
        for number, source in enumerate(self.sources):
            reason, said = self.rests(number), self._away.get(number, 0.0)
            if reason is not None and not said:
                self._away[number] = time.monotonic()
                logger.warning(
                    "%s is away; this spider keeps its links, and goes on with other partitions: %s",
                    source,
                    reason,
                )
            elif reason is None and said and time.monotonic() > said + CALM_S:
                del self._away[number]
                logger.info("%s answers again", source)
