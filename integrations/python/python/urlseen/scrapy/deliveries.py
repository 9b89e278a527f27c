"""Requests that a spider process holds, and the links on their pages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from urlseen._urlseen import Away, Consumer, Full, Refused
from urlseen.scrapy.engine import check_engine
from urlseen.scrapy.fingerprinter import check_record
from urlseen.scrapy.pages import Page, Pages
from urlseen.scrapy.settings import (
    address,
    check_names,
    check_no_rules,
    held_max,
    key,
    logger,
    partitions,
    spider_name,
    whole,
)
from urlseen.scrapy.waits import FIRST_PAUSE_S, LONGEST_PAUSE_S, Throttle, Wakeup

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from urlseen._urlseen import Held

T = TypeVar("T")

#: Maximum number of bytes of items that Redis has not taken. If there are more, the spider closes.
KEPT_BYTES = 64 << 20
#: Number of bytes of waiting items with which a spider stops to pop. The pages that it still fetches
#: then have room for their links.
PAUSE_BYTES = KEPT_BYTES // 2
#: Maximum number of seconds that a closing spider waits for Redis.
CLOSE_WAIT_S = 10.0
#: Minimum number of seconds between two looks at the rejects.
LOOK_S = 5.0
#: Minimum number of seconds between the messages that a partition is away and that it answers again.
CALM_S = 2.0


class Delivery(Page):
    """Popped request, tracked until its page is finished."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.item)
        self.held = held


class Deliveries(Pages[Delivery]):
    """Pops requests, tracks them until they are finished, and collects the links of their pages.

    All methods run in the thread of the reactor. A thread of the consumer sends links and
    acknowledgements, in the order that loses no link, and another one sends heartbeats. Only the
    constructor raises errors of Redis. While Redis is away, the consumer keeps what it could not
    send, and this class pops nothing. While only some partitions are away, it pops from the others.
    If a page cannot be acknowledged, another spider fetches the page again.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Reads the crawl record, and compares it with the settings.

        Raises `ValueError` if a setting is wrong, and `RuntimeError` if Redis does not answer or
        Scrapy's engine lacks a method.
        """
        super().__init__(crawler)
        settings = crawler.settings
        spider = spider_name(crawler)
        self.source = key(settings, "URLSEEN_SOURCE_KEY", "%(spider)s:discovered", spider)
        most = whole(settings, "URLSEEN_SOURCE_MAX", 0, 0, 1 << 62)
        self._throttle = Throttle(most, self.source)
        self._wakeup = Wakeup(crawler)
        self._open: dict[Delivery, None] = {}
        self._next_try = 0.0
        self._pause = FIRST_PAUSE_S
        self._has_said: set[str] = set()
        # Partitions of which this process has said that they are away, and the time.
        self._away: dict[int, float] = {}
        check_names(settings)
        check_no_rules(settings)
        check_engine()
        self._consumer = self._open_consumer()
        # Crawl record of each partition.
        self._records: list[dict[str, str] | None] = [None] * len(self._consumer.sources)
        try:
            self._check_records()
        except BaseException:
            self._consumer.leave(0)
            raise
        sources = zip(self._consumer.sources, self._records)
        if missing := [source for source, record in sources if record is None]:
            logger.warning(
                "No urlseen has run for %s yet. This spider pushes its requests, and pops none from"
                " there until urlseen runs",
                ", ".join(missing),
            )
        self._next_look = time.monotonic() + LOOK_S

    def pop(self) -> Delivery | None:
        """Pops the next unseen request and holds it. Returns `None` if it cannot pop one now.

        If Redis has no request now, the links of unfinished pages are sent, and the engine asks again
        soon.
        """
        if self._is_ended or self._wakeup.is_waiting:
            return None
        held = self._attempt(self._pop, None)
        if held is None:
            self._wait()
            return None
        self._wakeup.came()
        self._watch()
        delivery = Delivery(held)
        self._open[delivery] = None
        return delivery

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Moves a request to the rejects, with the reason why this program cannot read it."""
        self._count_stat("unreadable")
        self._consumer.reject(delivery.held, reason)
        self._end_delivery(delivery)

    def collect(self, request: Request, item: bytes, fingerprint: bytes) -> None:
        """Keeps an item until its page is finished, or until there are enough items for a push.

        The item is the request in the form for Redis. It was found on the page that led to the
        request. An item that belongs to no page is sent at once.
        """
        page = self._page(request)
        held = None if page is None else page.held
        is_filtered = not request.dont_filter
        self._consumer.collect(held, fingerprint.hex(), item, is_filtered=is_filtered)
        if page is None:
            self._wakeup.hurry()
        self._keep_within_bound()

    def forget(self, fingerprint: str) -> bool:
        """Asks urlseen to let a fingerprint (hex digits) pass once more.

        Returns `False` if the filter of the crawl cannot forget.
        """
        if not self._consumer.forget(fingerprint):
            self._count_stat("forget_failed")
            self._say("forget", f"The filter of the crawl of {self.source} cannot forget")
            return False
        return True

    def flush(self) -> bool:
        """Tries to send everything. Returns `True` if Redis has it, and `False` if it is away."""
        left = self._consumer.flush(0)
        self._attempt(self._tend, None)
        return left is None

    def count(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests.

        Returns 1 if Redis does not answer, so that the spider does not end.
        """
        return 0 if self._is_ended else self._attempt(self._count, 1)

    def close(self) -> None:
        """Sends the remaining items, requeues unfinished requests, and removes the consumer."""
        # Pages that are left before their acknowledgements are sent are fetched again.
        problem: object = self._consumer.flush(CLOSE_WAIT_S)
        requeued, failed = self._consumer.leave(0 if problem else CLOSE_WAIT_S)
        if requeued:
            logger.info("%d requests were not finished, and are requeued", requeued)
        try:
            self._next_look = 0.0
            self._tend()
        except (Away, Refused, ValueError) as error:
            failed = failed or str(error)
        if problem := problem or failed:
            logger.error(
                "This spider closes, and Redis does not take its last items: %s. The requests that"
                " the consumer %s holds are requeued after held.timeout. %d requests that belong to"
                " no page are lost",
                problem,
                self._consumer.name,
                self._consumer.loose,
            )

    def _open_consumer(self) -> Consumer:
        settings = self._crawler.settings
        name = settings.get("URLSEEN_CONSUMER")
        try:
            consumer = Consumer(
                address(settings, "URLSEEN_URL"),
                self.source,
                None if name is None else str(name),
                partitions(settings),
                held_max(settings),
            )
            # Later looks count from here.
            consumer.new_rejects()
        except (Away, Refused) as error:
            raise RuntimeError(
                f"the crawl record of {self.source} cannot be read: {error}"
            ) from error
        return consumer

    def _check_records(self) -> None:
        """Compares changed records with the settings."""
        records = self._consumer.changed_records() or self._records
        for record in records:
            if record is not None and record not in self._records:
                check_record(record, self._crawler)
        self._records = records

    def _pop(self) -> Held | None:
        self._tend()
        waiting = self._consumer.waiting
        if waiting > PAUSE_BYTES:
            self._say(
                "waiting",
                f"{waiting >> 20} MiB of links wait for partitions that are away; this spider pops no"
                " more until Redis has them",
            )
            return None
        if self._throttle.holds(self._consumer, is_busy=bool(self._open)):
            return None
        try:
            return self._consumer.pop()
        except Full:
            self._say(
                "full",
                f"This spider holds {held_max(self._crawler.settings)} requests (URLSEEN_HELD_MAX), and"
                " pops no more until some of them are finished",
            )
            return None

    def _tend(self) -> None:
        """Takes note of what has changed in Redis.

        Raises `Away`, `Refused` if a command was refused, and `ValueError` if a changed record does
        not fit the settings.
        """
        self._consumer.tell(self._count_stat)
        self._check_records()
        self._look_at_rejects()
        self._say_who_is_away()

    def _look_at_rejects(self) -> None:
        """Counts new rejects of the crawl, and logs the first reason. Looks only once in a while."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_S
        new, newest = self._consumer.new_rejects()
        if new:
            self._count_stat("rejected", new)
            self._say(
                "rejected",
                f"urlseen has rejected {new} items of this crawl: {reason_of(newest)}. To see them:"
                " urlseen rejects list",
            )

    def _say_who_is_away(self) -> None:
        sources = self._consumer.sources
        for number, source in enumerate(sources if len(sources) > 1 else ()):
            reason, said = self._consumer.rests(number), self._away.get(number, 0.0)
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

    def _count(self) -> int:
        self._tend()
        return self._consumer.count()

    def _wait(self) -> None:
        self._consumer.push_early()
        for delivery in list(self._open):
            # The engine may have dropped the last request of the delivery without a signal.
            self._finish_if_over(delivery)
        waited_s = self._wakeup.later()
        if waited_s and not self._open:
            in_source = self._attempt(self._consumer.source_len, 0)
            if in_source:
                self._wakeup.warned(waited_s)
                logger.warning(
                    "No request has come for %.0f s, but %d items wait in %s. Is urlseen running?",
                    waited_s,
                    in_source,
                    self.source,
                )

    def _finish_if_over(self, delivery: Delivery) -> None:
        if delivery.is_over:
            self._consumer.finish(delivery.held)
            self._end_delivery(delivery)

    def _end_delivery(self, delivery: Delivery) -> None:
        delivery.is_finished = True
        self._open.pop(delivery, None)
        self._wakeup.hurry()
        self._keep_within_bound()

    def _attempt(self, action: Callable[[], T], otherwise: T) -> T:
        """Runs `action` and returns its result. Returns `otherwise` if Redis is away or refuses.

        A refusal ends the crawl. During a pause after a lost connection, the method returns
        `otherwise` without a call of `action`.
        """
        if time.monotonic() < self._next_try:
            return otherwise
        try:
            result = action()
        except Away as away:
            self._next_try = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
            self._say("away", f"Redis is away; this spider pops nothing until it is back: {away}")
            return otherwise
        except (Refused, ValueError) as refused:
            self._next_try = time.monotonic() + LONGEST_PAUSE_S
            self._end("urlseen_refused", f"urlseen's queue cannot continue: {refused}")
            return otherwise
        self._next_try, self._pause = 0.0, FIRST_PAUSE_S
        if "away" in self._has_said:
            self._has_said.discard("away")
            logger.info("Redis is back")
        return result

    def _keep_within_bound(self) -> None:
        kept = self._consumer.kept
        if kept <= KEPT_BYTES or self._is_ended or self.flush():
            return
        self._consumer.give_up_pages()
        self._end(
            "urlseen_away",
            f"Redis does not take the links that this spider found, and {kept >> 20} MiB of them"
            " wait. Their pages were not acknowledged, and are fetched again",
        )

    def _say(self, what: str, message: str) -> None:
        if what not in self._has_said:
            self._has_said.add(what)
            logger.warning("%s", message)


def reason_of(reject: bytes | None) -> str:
    """Returns the reason of a reject."""
    try:
        return str(json.loads(reject or b"")["reason"])
    except (TypeError, ValueError, KeyError):
        return "for an unknown reason"
