"""Partitions of a crawl, as one spider process uses them, and the requests that it holds."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from urlseen._urlseen import Away, Consumer, Refused
from urlseen.scrapy.fingerprinter import check_record
from urlseen.scrapy.pages import Page
from urlseen.scrapy.settings import address, held_max, partitions

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from urlseen._urlseen import Held

logger = logging.getLogger("urlseen.scrapy")

#: Minimum number of seconds between the messages that a partition is away and that it answers again.
CALM_S = 2.0


class Delivery(Page):
    """Popped request, tracked until Redis has all links of its page."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.item)
        self.held = held
        #: Number of the partition that holds the request.
        self.partition = held.partition
        #: Links that the filter may drop, by partition. They may be pushed before the page is
        #: finished.
        self.filtered: dict[int, list[bytes]] = {}
        #: Links that the filter always lets pass (`dont_filter`). They wait for the
        #: acknowledgement, so that a page that is fetched twice does not push them twice.
        self.unfiltered: list[bytes] = []
        #: Size of all links in both lists, in bytes.
        self.size = 0

    def collect(self, data: bytes, partition: int | None) -> None:
        """Keeps a link of the page for a partition. `None` is for a link with `dont_filter`."""
        links = self.unfiltered if partition is None else self.filtered.setdefault(partition, [])
        links.append(data)
        self.size += len(data)

    def take_filtered(self) -> dict[int, list[bytes]]:
        """Returns the links that may be pushed early, and removes them from this delivery."""
        items, self.filtered = self.filtered, {}
        self.size = sum(map(len, self.unfiltered))
        return items


class Partitions(Consumer):
    """Consumer of the requests of this spider's partitions, and producer for all partitions.

    The constructor reads the partition table of the crawl that has the key `source`, and the crawl
    records. It raises `Away` if a partition does not answer. All other methods raise `Away` only if
    no partition answers, except `leave`, `finish` and `reject`. All methods raise `Refused` if Redis
    refuses a command, and `ValueError` if a setting does not fit a record or the table has changed.

    A thread of the consumer sends heartbeats, reads the records again, and requeues deliveries that
    this process lacks and those of stopped consumers.
    """

    def __new__(cls, crawler: Crawler, source: str) -> Self:
        settings = crawler.settings
        name = settings.get("URLSEEN_CONSUMER")
        return super().__new__(
            cls,
            address(settings, "URLSEEN_URL"),
            source,
            None if name is None else str(name),
            partitions(settings),
            held_max(settings),
        )

    def __init__(self, crawler: Crawler, source: str) -> None:
        #: Unfinished deliveries of this process.
        self.open: dict[Delivery, None] = {}
        self.source = source
        #: Crawl record of each partition, or `None` if no urlseen has run for it yet.
        self.records: list[dict[str, str] | None] = [None for _ in self.sources]
        self._crawler = crawler
        self._changes = 0
        # Partitions of which this process has said that they are away, and the time.
        self._away: dict[int, float] = {}
        try:
            self._check_records()
        except BaseException:
            with suppress(Away, Refused):
                self.leave()
            raise

    @property
    def missing(self) -> list[int]:
        """Numbers of the partitions that have no crawl record."""
        return [number for number, record in enumerate(self.records) if record is None]

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

    def rejects(self) -> dict[int, int]:
        """Returns the number of rejects of each partition that answers."""
        found = [number for number, record in enumerate(self.records) if record is not None]
        lengths = self.ask([(each, [b"LLEN", self._rejects_key(each)]) for each in found])
        return {each: it for each, it in zip(found, lengths) if isinstance(it, int)}

    def last_reason(self, number: int) -> str:
        """Returns the reason of the newest reject of a partition."""
        (reject,) = self.ask([(number, [b"LINDEX", self._rejects_key(number), b"-1"])])
        try:
            return str(json.loads(reject)["reason"])  # type: ignore[arg-type]
        except (TypeError, ValueError, KeyError):
            return "for an unknown reason"

    def _rejects_key(self, number: int) -> bytes:
        return (self.records[number] or {})["rejects"].encode()

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
        """Counts the requests in the sources of the partitions that have no crawl record."""
        missing = self.missing
        if not missing:
            return 0
        answers = self.ask([(each, [b"LLEN", self.sources[each].encode()]) for each in missing])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        # A daemon that began meanwhile may hold items that are in neither source nor sink.
        self.refresh()
        return sum(answer for answer in answers if isinstance(answer, int))

    def _check_records(self) -> None:
        """Compares changed records with the settings."""
        changes = self.changes()
        if changes == self._changes:
            return
        records = self.read_records()
        for record, before in zip(records, self.records):
            if record is not None and record != before:
                check_record(record, self._crawler)
        self.records, self._changes = records, changes

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
