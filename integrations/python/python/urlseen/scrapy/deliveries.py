"""Requests that a spider process holds, and the links on their pages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from urlseen._urlseen import Away, Full, Refused
from urlseen.scrapy.engine import check_engine
from urlseen.scrapy.outbox import PUSH_BYTES, PUSH_ITEMS, Outbox, count
from urlseen.scrapy.pages import Pages
from urlseen.scrapy.partitions import Delivery, Partitions
from urlseen.scrapy.settings import check_names, held_max, source_key, spider_name, whole
from urlseen.scrapy.waits import FIRST_PAUSE_S, LONGEST_PAUSE_S, Throttle, Wakeup

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger("urlseen.scrapy")

T = TypeVar("T")

#: Maximum number of bytes of unsent items. If there are more, the spider closes.
KEPT_BYTES = 64 << 20
#: Number of bytes of unsent items with which a spider stops to pop. The pages that it still fetches
#: then have room for their links.
PAUSE_BYTES = KEPT_BYTES // 2
#: Maximum number of seconds that a closing spider waits for Redis.
CLOSE_WAIT_S = 10.0
#: Minimum number of seconds between two looks at the rejects.
LOOK_S = 5.0


class Deliveries(Pages[Delivery]):
    """Pops requests, tracks them until they are finished, and sends the links of their pages.

    All methods run in the thread of the reactor; only the heartbeat has a thread of its own. Only
    the constructor raises errors of Redis. While Redis is away, this class keeps the items that it
    could not send, and pops nothing. While only some partitions are away, it pops from the others. If
    a page cannot be acknowledged, another spider fetches the page again.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Reads the crawl record, and compares it with the settings.

        Raises `ValueError` if a setting is wrong, and `RuntimeError` if Redis does not answer or
        Scrapy's engine lacks a method.
        """
        super().__init__(crawler)
        settings = crawler.settings
        self.source = source_key(settings, spider_name(crawler))
        self._throttle = Throttle(whole(settings, "URLSEEN_SOURCE_MAX", 0, 0, 1 << 62))
        self._wakeup = Wakeup(crawler)
        self._next_try = 0.0
        self._pause = FIRST_PAUSE_S
        self._has_said: set[str] = set()
        self._has_given_up = False
        check_names(settings)
        check_engine()
        self._partitions = self._read_partitions()
        self._outbox = Outbox(self._partitions, self._count_stat)
        # Number of rejects in each partition at the last look.
        self._rejects = self._partitions.rejects()
        self._next_look = time.monotonic() + LOOK_S

    def pop(self) -> Delivery | None:
        """Pops the next unseen request and holds it. Returns `None` if it cannot pop one now.

        If Redis has no request now, the method also sends the collected links, and makes the engine
        ask again soon.
        """
        if self._is_ended or self._wakeup.is_waiting:
            return None
        delivery = self._attempt(self._pop, None)
        if delivery is None:
            self._wait()
            return None
        self._wakeup.came()
        self._watch()
        return delivery

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Moves a delivery to the rejects, because no request can be made from it."""
        self._count_stat("unreadable")
        self._outbox.reject(delivery, reason)
        self._end_delivery(delivery)

    def collect(self, request: Request, data: bytes, fingerprint: bytes) -> None:
        """Keeps an item until its page is finished, or until there are enough items for a push.

        The item `data` is the request `request` in the form for Redis. It was found on the page that
        led to `request`. An item that belongs to no page is pushed when the engine next asks for
        work.
        """
        delivery = self._page(request)
        partition = self._partitions.partition_of(fingerprint.hex())
        if delivery is None:
            self._outbox.push(partition, data)
            if self._outbox.is_full:
                self.flush()
            return
        delivery.collect(data, None if request.dont_filter else partition)
        if count(delivery.filtered) >= PUSH_ITEMS or delivery.size >= PUSH_BYTES:
            self._outbox.push_early(delivery)
            self.flush()

    def forget(self, fingerprint: str) -> bool:
        """Asks urlseen to let a fingerprint (hex digits) pass once more.

        Returns `False` if the filter of the crawl cannot forget.
        """
        partition = self._partitions.partition_of(fingerprint)
        record = self._partitions.records[partition]
        if record is not None and not record["forget"]:
            self._count_stat("forget_failed")
            self._say("forget", f"The filter of the crawl of {self.source} cannot forget")
            return False
        self._outbox.forget(partition, fingerprint.encode())
        return True

    def flush(self) -> bool:
        """Sends all items that may be sent now. Returns `True` if Redis has taken them."""
        is_empty, size = self._outbox.is_empty, self._outbox.size
        is_sent = self._attempt(self._send, False)
        if (is_sent and not is_empty) or self._outbox.size < size:
            self._wakeup.hurry()
        if not is_sent:
            self._keep_within_bound()
        return is_sent

    def count(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests.

        Returns 1 if Redis does not answer, so that the spider does not end.
        """
        return 0 if self._is_ended else self._attempt(self._count, 1)

    def close(self) -> None:
        """Sends the remaining items, requeues unfinished requests, and removes the consumer."""
        end = time.monotonic() + CLOSE_WAIT_S
        self._next_look = 0.0
        while True:
            is_last = time.monotonic() >= end
            try:
                # Pages that are left before their acknowledgements are sent are fetched again.
                if self._send() or is_last:
                    requeued = self._partitions.leave()
                    if requeued:
                        logger.info("%d requests were not finished, and are requeued", requeued)
                if self._outbox.away is None:
                    break
                raise self._outbox.away
            except (Refused, ValueError) as refused:
                self._say_left_over(refused)
                break
            except Away as away:
                if is_last:
                    self._say_left_over(away)
                    break
                time.sleep(FIRST_PAUSE_S)
        self._partitions.close()

    def _read_partitions(self) -> Partitions:
        try:
            partitions = Partitions(self._crawler, self.source)
        except (Away, Refused) as error:
            raise RuntimeError(
                f"the crawl record of {self.source} cannot be read: {error}"
            ) from error
        if missing := partitions.missing:
            logger.warning(
                "No urlseen has run for %s yet. This spider pushes its requests, and pops none from"
                " there until urlseen runs",
                ", ".join(partitions.sources[number] for number in missing),
            )
        return partitions

    def _pop(self) -> Delivery | None:
        self._send()
        if self._outbox.size > PAUSE_BYTES:
            self._say(
                "waiting",
                f"{self._outbox.size >> 20} MiB of links wait for partitions that are away; this"
                " spider pops no more until Redis has them",
            )
            return None
        if self._throttle.holds(self._partitions, is_busy=bool(self._partitions.open)):
            return None
        try:
            return self._partitions.pop()
        except Full:
            self._say(
                "full",
                f"This spider holds {held_max(self._crawler.settings)} requests (URLSEEN_HELD_MAX), and"
                " pops no more until some of them are finished",
            )
            return None

    def _send(self) -> bool:
        """Sends all items that may be sent. Returns `False` if a partition is away that gets some.

        Raises `Away` if all partitions are away.
        """
        self._partitions.refresh()
        self._look_at_rejects()
        self._outbox.send()
        away = self._outbox.away
        if away is not None and self._partitions.is_away():
            raise away
        return away is None

    def _look_at_rejects(self) -> None:
        """Counts new rejects of the crawl, and logs the first reason. Looks only once in a while."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_S
        for number, length in self._partitions.rejects().items():
            new = length - self._rejects.get(number, 0)
            self._rejects[number] = length
            if new > 0:
                self._count_stat("rejected", new)
                reason = self._partitions.last_reason(number)
                self._say(
                    "rejected",
                    f"urlseen has rejected {new} items of this crawl: {reason}. To see them:"
                    " urlseen rejects list",
                )

    def _count(self) -> int:
        self._send()
        return self._partitions.count()

    def _wait(self) -> None:
        for delivery in list(self._partitions.open):
            if delivery.filtered:
                self._outbox.push_early(delivery)
            # The engine may have dropped the last request of the delivery without a signal.
            self._finish_if_over(delivery)
        waiting = self.count()
        if waiting and (waited_s := self._wakeup.later()):
            in_source = self._attempt(self._partitions.source_len, 0)
            if in_source and not self._partitions.open:
                logger.warning(
                    "No request has come for %.0f s, but %d items wait in %s. Is urlseen running?",
                    waited_s,
                    in_source,
                    self.source,
                )

    def _finish_if_over(self, delivery: Delivery) -> None:
        if delivery.is_over and not self._has_given_up:
            self._outbox.finish(delivery)
            self._end_delivery(delivery)

    def _end_delivery(self, delivery: Delivery) -> None:
        delivery.is_finished = True
        self._partitions.open.pop(delivery, None)
        self.flush()

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
        kept = self._outbox.size + sum(each.size for each in self._partitions.open)
        if kept <= KEPT_BYTES or self._has_given_up:
            return
        self._has_given_up = True
        self._outbox.give_up_pages()
        self._end(
            "urlseen_away",
            f"Redis does not take the links that this spider found, and {kept >> 20} MiB of them"
            " wait. Their pages were not acknowledged, and are fetched again",
        )

    def _say(self, what: str, message: str) -> None:
        if what not in self._has_said:
            self._has_said.add(what)
            logger.warning("%s", message)

    def _say_left_over(self, error: Exception) -> None:
        logger.error(
            "This spider closes, and Redis does not take its last items: %s. The requests that the"
            " consumer %s holds are requeued after held.timeout. %d requests that belong to no page"
            " are lost",
            error,
            self._partitions.name,
            self._outbox.loose,
        )
