"""Scheduler of a crawl in one process, without Redis and without a daemon."""

from __future__ import annotations

import heapq
import json
import sqlite3
import time
from collections import OrderedDict
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request
from scrapy.pqueues import DownloaderInterface
from scrapy.utils.job import job_dir

from urlseen import Filter, Options
from urlseen._urlseen import Rules
from urlseen.scrapy.fingerprinter import Fingerprinter, fingerprinter_of
from urlseen.scrapy.pages import P, Page, Pages
from urlseen.scrapy.record import Expiries, Key
from urlseen.scrapy.scheduler import DIGESTS, Scheduler
from urlseen.scrapy.settings import RULES, check_names, choice, logger, refusal

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

#: Number of places for the requests of one priority, and the highest priority that counts.
PLACES, HIGHEST = 1 << 42, 1 << 20


class LocalScheduler(Scheduler):
    """Scheduler of a crawl in one process. With a JOBDIR, the crawl survives a kill.

        SCHEDULER = "urlseen.scrapy.LocalScheduler"

    `DUPEFILTER_CLASS` has no effect, because a filter of urlseen drops the seen requests. With a
    JOBDIR, the folder `urlseen` there has queue, requests in work and filter; a second process is
    refused. Without a JOBDIR, everything is in memory.

    `URLSEEN_ORDER` is `"lifo"` (as in Scrapy) or `"fifo"`: the order of requests with the same
    priority. `URLSEEN_SYNC = "full"` syncs the end of each page to the disk. `URLSEEN_CAPACITY` is
    the first size of the filter, 1,000,000 requests; it grows. `URLSEEN_ERROR_RATE` is the share of
    new requests that it takes for seen ones when it has grown to a hundred times this size, 1e-6.

    `URLSEEN_DROP`, `URLSEEN_PASS`, `URLSEEN_LIMIT` and `URLSEEN_EXPIRE` are lists of rules, with the
    keys of `[[drop]]` and so on in urlseen's configuration.
    """

    deliveries: LocalQueue[Any]

    @refusal()
    def open(self, spider: Spider) -> None:
        """Opens the queue and the filter.

        Raises `OSError` if another process uses the JOBDIR, or if the folder cannot be read, and
        `ValueError` if the folder has the fingerprints of another algorithm or of other rules.
        """
        # This module imports the other one, which has the queue on the disk.
        from urlseen.scrapy.job_queue import Job

        self.spider = spider
        folder = job_dir(self._crawler.settings)
        self._is_in_memory = folder is None
        if folder is None:
            self.deliveries = Memory(self._crawler)
            return
        job = Job(self._crawler, Path(folder))
        self.deliveries = job
        try:
            job.take_over(lambda it: self._item(it, self._fingerprinter.fingerprint(it)))
        except BaseException:
            job.release()
            raise

    def enqueue_request(self, request: Request) -> bool:
        """Adds a request to the queue. Returns `False` if a rule or the filter drops it."""
        return self.deliveries.decide(request) and super().enqueue_request(request)

    def _item(self, request: Request, fingerprint: bytes) -> bytes:
        return b"" if self._is_in_memory else super()._item(request, fingerprint)

    def _request(self, item: Any) -> Request:
        return item if isinstance(item, Request) else super()._request(item)


class Decision(NamedTuple):
    """Decision of the rules about a request."""

    is_dropped: bool = False
    #: `True` if the filter neither checks nor records the request.
    is_unfiltered: bool = False
    #: Number of seconds after which the request passes again.
    after: float | None = None
    #: URL whose groups the limits count.
    url: str | None = None


NO_RULE = Decision()


class LocalQueue(Pages[P]):
    """Order of the waiting requests, the rules, and the filter that drops the seen requests.

    The requests of each downloader slot wait apart. The slot with the fewest active downloads gets
    its turn first, and slots with equally many in turn, as with `DownloaderAwarePriorityQueue`.
    """

    def __init__(self, crawler: Crawler, filter: Filter, db: sqlite3.Connection) -> None:
        super().__init__(crawler)
        check_names(crawler.settings)
        is_lifo = choice(crawler.settings, "URLSEEN_ORDER", ("lifo", "fifo")) == "lifo"
        self._direction = 1 if is_lifo else -1
        self._downloader = DownloaderInterface(crawler).downloader
        # Of so many slots, one has no active download.
        self._candidates = 1 + crawler.settings.getint("CONCURRENT_REQUESTS")
        self._numbers = count()
        # Number of waiting requests of each slot. The slot whose turn is next is the first one.
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._filter = filter
        self._expiries = Expiries(db)
        rules = {it: crawler.settings.get(name) or [] for name, it in RULES.items()}
        self._rules = Rules(json.dumps(rules), **options_of(crawler))
        self._has_rules = any(rules.values())
        # About the request that is enqueued now.
        self._decision = NO_RULE

    def decide(self, request: Request) -> bool:
        """Applies the rules to a request that is enqueued now. Returns `False` if it is dropped."""
        if time.time() >= self._expiries.next:
            self._forget_expired()
        if not self._has_rules and "ttl" not in request.meta:
            self._decision = NO_RULE
            return True
        try:
            self._decision = Decision(*self._rules.decide(request.url, request.meta))
        except ValueError as error:
            self._count_stat("rejected")
            logger.warning("%s is rejected: %s", request, error)
            return False
        if self._decision.is_dropped:
            self._count_stat("dropped")
        return not self._decision.is_dropped

    def count(self) -> int:
        """Returns the number of waiting requests. The engine itself counts those in work."""
        return 0 if self._is_ended else sum(self._waiting.values())

    def forget(self, fingerprint: str) -> bool:
        """Lets a fingerprint (hex digits) pass once more."""
        self._forget([key(bytes.fromhex(fingerprint))])
        self._count_stat("forgotten")
        return True

    def _forget_expired(self) -> None:
        while keys := self._expiries.due():
            self._forget(keys)

    def _forget(self, keys: list[Key]) -> None:
        """Lets keys pass once more."""
        raise NotImplementedError

    def _key(self, request: Request, fingerprint: bytes) -> Key | None:
        """Returns the key of a request; `None` if the filter neither checks nor records it."""
        is_unfiltered = request.dont_filter or self._decision.is_unfiltered
        return None if is_unfiltered else key(fingerprint)

    def _admit(self, decision: Decision) -> list[bytes] | None:
        """Counts an unseen request. Returns the changes of the counts, or `None` if it is over a
        limit.
        """
        changes = [] if decision.url is None else self._rules.admit(decision.url)
        if changes is None:
            self._count_stat("over_limit")
        return changes

    def _number(self, request: Request, is_late: bool = False) -> int:
        """Returns the place of a request in its slot: the highest number comes first.

        Late requests keep their order, and come after all others of their priority. A start request
        is late.
        """
        priority = max(-HIGHEST, min(request.priority, HIGHEST))
        is_late = is_late or bool(request.meta.get("is_start_request"))
        direction = -1 if is_late else self._direction
        return priority * PLACES + PLACES // 2 + direction * next(self._numbers)

    def _add_waiting(self, slot: str, number: int = 1) -> None:
        self._waiting[slot] = self._waiting.get(slot, 0) + number

    def _next_slot(self) -> str | None:
        """Chooses the slot of the next request, and takes 1 from its number of requests."""
        if not self._waiting:
            return None
        slots = self._downloader.slots
        first = islice(self._waiting, self._candidates)
        slot = min(first, key=lambda it: len(slots[it].active) if it in slots else 0)
        self._waiting[slot] -= 1
        if self._waiting[slot]:
            self._waiting.move_to_end(slot)
        else:
            del self._waiting[slot]
        return slot


class Memory(LocalQueue[Page]):
    """Queue and filter in memory."""

    def __init__(self, crawler: Crawler) -> None:
        db = sqlite3.connect(":memory:", isolation_level=None)
        super().__init__(crawler, Filter(*size(crawler)), db)
        self._requests: dict[str, list[tuple[int, Request]]] = {}

    def is_seen(self, request: Request, fingerprint: bytes) -> bool:
        """Returns `True` if the request has been seen."""
        name = self._key(request, fingerprint)
        return name is not None and name in self._filter

    def collect(self, request: Request, item: bytes, fingerprint: bytes) -> None:
        """Adds a request to the queue and to the filter, unless it is over a limit."""
        name = self._key(request, fingerprint)
        if name is not None:
            if self._admit(self._decision) is None:
                return
            self._filter.add(name)
            if self._decision.after is not None:
                self._expiries.add(name, self._decision.after)
        slot = self._downloader.get_slot_key(request)
        waiting = self._requests.setdefault(slot, [])
        heapq.heappush(waiting, (-self._number(request), request))
        self._add_waiting(slot)

    def pop(self) -> Page | None:
        """Pops the next request. Returns `None` if none waits."""
        slot = self._next_slot()
        if slot is None:
            return None
        waiting = self._requests[slot]
        _, request = heapq.heappop(waiting)
        if not waiting:
            del self._requests[slot]
        return Page(request)

    def _forget(self, keys: list[Key]) -> None:
        self._filter.forget_many(keys)
        self._expiries.remove(keys)

    def took(self, page: Page, request: Request) -> None:
        """Does nothing, because queue and filter end with the process."""

    def close(self) -> None:
        """Closes the filter."""
        self._filter.close()


def key(fingerprint: bytes) -> Key:
    """Returns the key of a fingerprint in the filter."""
    return fingerprint if len(fingerprint) in DIGESTS else fingerprint.hex()


def size(crawler: Crawler) -> tuple[int | None, float | None]:
    """Reads the first size of the filter and its error rate."""
    settings = crawler.settings
    return (
        settings.getint("URLSEEN_CAPACITY") or None,
        settings.getfloat("URLSEEN_ERROR_RATE") or None,
    )


def open_filter(crawler: Crawler, folder: Path) -> Filter:
    """Opens the filter of a crawl in a folder. An existing folder keeps the size that it was made
    for.
    """
    exists = (folder / "header").exists()
    return Filter.open(folder, *(() if exists else size(crawler)), **options_of(crawler))


def options_of(crawler: Crawler) -> Options:
    """Returns how the fingerprints of a crawl are computed, if urlseen computes them."""
    fingerprinter = fingerprinter_of(crawler)
    return fingerprinter.options if isinstance(fingerprinter, Fingerprinter) else {}
