"""Requests that a spider process holds, and the links on their pages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from scrapy import signals

from urlseen_scrapy.brake import Brake
from urlseen_scrapy.consumer import Consumer, Producer, consumer_name
from urlseen_scrapy.delivery import Delivery
from urlseen_scrapy.ending import close_spider
from urlseen_scrapy.engine import check_engine, is_in_progress, watch_engine
from urlseen_scrapy.heartbeat import Heartbeat
from urlseen_scrapy.keys import CrawlKeys, source_key
from urlseen_scrapy.nodes import check_slots
from urlseen_scrapy.outbox import PUSH_BYTES, PUSH_ITEMS, Outbox
from urlseen_scrapy.patience import FIRST_PAUSE_S, LONGEST_PAUSE_S
from urlseen_scrapy.poke import Poke
from urlseen_scrapy.reclaim import Reclaimer
from urlseen_scrapy.record import Fit, Record
from urlseen_scrapy.settings import check_names, spider_name, whole
from urlseen_scrapy.wire import Away, Refused, Wire

if TYPE_CHECKING:
    from redis import Redis
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger("urlseen_scrapy")

T = TypeVar("T")

#: Maximum number of bytes of unsent items. If there are more, the spider closes.
KEPT_BYTES = 64 << 20
#: Maximum number of seconds that a closing spider waits for Redis.
CLOSE_WAIT_S = 10.0
#: Number of heartbeats during the time-out of a consumer.
BEATS = 4

_deliveries: WeakKeyDictionary[Crawler, Deliveries] = WeakKeyDictionary()


def deliveries_of(crawler: Crawler) -> Deliveries | None:
    """Returns the deliveries of a crawl, or `None` if its requests do not pass through urlseen."""
    return _deliveries.get(crawler)


class Deliveries:
    """Pops requests, tracks them until they are finished, and sends the links of their pages.

    All methods run in the thread of the reactor; only the heartbeat has a thread of its own. Only
    the constructor raises errors of Redis. While Redis is away, this class keeps the items that it
    could not send, and pops nothing. If a page cannot be acknowledged, another spider fetches the
    page again.
    """

    def __init__(
        self, crawler: Crawler, server: Redis, fit: Fit, *, keeps_children: bool = False
    ) -> None:
        """Reads the crawl record, and compares it with the settings and with `fit`.

        `fit` has the values that the caller needs in the record. Set `keeps_children` if the
        scheduler keeps requests in the memory of this process. Raises `ValueError` if a setting is
        wrong, and `RuntimeError` if Redis does not answer or Scrapy's engine lacks a method.
        """
        settings = crawler.settings
        self.source = source_key(settings, spider_name(crawler))
        self._crawler = crawler
        self._fit = fit
        self._keeps_children = keeps_children
        self._server = server
        self._wire = Wire.of_client(server, self.source)
        self._beat_wire = Wire.of_client(server, self.source)
        self._keys = CrawlKeys.of_source(self.source)
        self._name = consumer_name(settings)
        self._held_max = whole(settings, "URLSEEN_HELD_MAX", 1000, 1, 2000)
        self._brake = Brake(whole(settings, "URLSEEN_SOURCE_MAX", 0, 0, 1 << 62))
        self._producer = Producer(self._wire, self.source)
        self._consumer: Consumer | None = None
        self._heartbeat: Heartbeat | None = None
        self._reclaimer: Reclaimer | None = None
        self._outbox = Outbox(self._count_stat)
        self._poke = Poke(crawler)
        self._open: dict[int, Delivery] = {}
        self._owners: WeakKeyDictionary[Request, Delivery] = WeakKeyDictionary()
        #: Number of the next delivery. After a lost reply, the pop is repeated with this number.
        self._number = 1
        self._last: tuple[Delivery, Request] | None = None
        self._reconciled = 0
        self._next_try = 0.0
        self._pause = FIRST_PAUSE_S
        self._has_said: set[str] = set()
        self._is_watching = self._is_ended = self._has_given_up = False
        check_names(settings)
        check_slots(server, {"URLSEEN_SOURCE_KEY": self.source, fit.sink_setting: fit.sink})
        check_engine()
        self._open_record()
        crawler.signals.connect(self.close, signals.spider_closed)
        crawler.signals.connect(self.dropped, signals.request_dropped)
        _deliveries[crawler] = self

    def pop(self) -> Delivery | None:
        """Pops the next unseen request and holds it. Returns `None` if it cannot pop one now.

        If Redis has no request now, the method also sends the collected links, and makes the engine
        ask again soon.
        """
        self._check_identity()
        if self._is_ended or self._poke.is_waiting:
            return None
        value = self._attempt(self._pop, None)
        if value is None or value == b"full":
            if value is not None:
                self._say(
                    "full",
                    f"This spider holds {self._held_max} requests (URLSEEN_HELD_MAX), and pops no"
                    " more until some of them are finished",
                )
            self._wait()
            return None
        self._poke.came()
        delivery = Delivery(self._number, value.split(b" ", 2)[2])
        self._open[delivery.number] = delivery
        self._number += 1
        if not self._is_watching:
            self._is_watching = True
            watch_engine(self._crawler.engine, self)
        return delivery

    def took(self, delivery: Delivery, request: Request) -> None:
        """Notes that `request` was made from the delivery and goes to the engine."""
        delivery.add(request)
        self._owners[request] = delivery
        if not self._keeps_children:
            self._last = (delivery, request)

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Moves a delivery to the rejects, because no request can be made from it."""
        self._count_stat("unreadable")
        self._outbox.reject(delivery, reason)
        self._end_delivery(delivery)

    def collect(self, request: Request, item: bytes, *, page: Request | None = None) -> None:
        """Keeps `item` until its page is finished, or until there are enough items for a push.

        `item` is the request `request` in the form for Redis. It was found on the page of the
        request `page`, or if this is `None`, on the page that led to `request`. An item that
        belongs to no page is pushed when the scheduler next asks for work.
        """
        delivery = self._owners.get(request if page is None else page)
        if delivery is None or delivery.is_finished:
            self._outbox.push(item)
            if self._outbox.is_full:
                self.flush()
            return
        delivery.collect(item, not request.dont_filter)
        if len(delivery.filtered) >= PUSH_ITEMS or delivery.size >= PUSH_BYTES:
            self._outbox.push_early(delivery)
            self.flush()

    def forget(self, fingerprint: str) -> bool:
        """Asks urlseen to let a fingerprint (hex digits) pass once more.

        Returns `False` if the filter of the crawl cannot forget.
        """
        if self._consumer is not None and not self._consumer.record.forget:
            self._count_stat("forget_failed")
            self._say("forget", f"The filter of the crawl of {self.source} cannot forget")
            return False
        self._outbox.forget(fingerprint.encode())
        return True

    def flush(self) -> bool:
        """Sends all items that may be sent now. Returns `True` if Redis has taken them."""
        is_empty = self._outbox.is_empty
        is_sent = self._attempt(self._send, False)
        if is_sent and not is_empty:
            self._poke.hurry()
        elif not is_sent:
            self._keep_within_bound()
        return is_sent

    def count(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests.

        Returns 1 if Redis does not answer, so that the spider does not end.
        """
        return 0 if self._is_ended else self._attempt(self._count, 1)

    def led_to(self, request: Request, child: Request) -> None:
        """Notes that the page or the failure of `request` led to the request `child`."""
        delivery = self._owners.get(request)
        if delivery is not None and not delivery.is_finished:
            self._owners[child] = delivery
            if self._keeps_children:
                delivery.add_child(child)

    def left(self, request: Request) -> None:
        """Notes that the engine is done with `request`, and finishes its delivery if possible."""
        delivery = self._owners.get(request)
        if delivery is None or delivery.is_finished:
            return
        delivery.remove(request)
        self._finish_if_over(delivery)

    def dropped(self, request: Request) -> None:
        """Notes that the scheduler has dropped `request`."""
        if self._keeps_children:
            self.left(request)

    def close(self) -> None:
        """Sends the remaining items, requeues unfinished requests, and removes the consumer."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        end = time.monotonic() + CLOSE_WAIT_S
        while True:
            try:
                self._send()
                if self._consumer is not None and (requeued := self._consumer.leave()):
                    logger.info("%d requests were not finished, and are requeued", requeued)
                break
            except Refused as refused:
                self._say_left_over(refused)
                break
            except Away as away:
                if time.monotonic() >= end:
                    self._say_left_over(away)
                    break
                time.sleep(FIRST_PAUSE_S)
        self._wire.close()

    def _open_record(self) -> None:
        try:
            self._read_record()
        except (Away, Refused) as error:
            raise RuntimeError(
                f"the crawl record of {self.source} cannot be read: {error}"
            ) from error
        if self._consumer is None:
            self._say(
                "record",
                f"No urlseen has run for {self.source} yet. This spider pushes to this key, and"
                " pops no requests until urlseen runs",
            )

    def _read_record(self) -> None:
        record = Record.read(self._wire, self.source)
        if record is None or (self._consumer is not None and self._consumer.record == record):
            return
        record.check(self._crawler, self._fit)
        check_slots(self._server, record.keys)
        if self._consumer is not None:
            self._consumer.record = record
            return
        self._consumer = Consumer(self._wire, self._keys, record, self._name, self._held_max)
        self._reclaimer = Reclaimer(self._consumer, self._wire)

    def _pop(self) -> bytes | None:
        self._send()
        consumer = self._consumer
        if consumer is None or self._brake.holds(consumer, is_busy=bool(self._open)):
            return None
        if self._heartbeat is None:
            period = consumer.record.held_timeout_s / BEATS
            self._heartbeat = Heartbeat(consumer, self._beat_wire, period)
        return consumer.pop(self._number)

    def _send(self) -> bool:
        if self._consumer is None:
            self._read_record()
        if self._consumer is None:
            self._outbox.send_loose(self._producer)
            return True
        self._outbox.send(self._consumer)
        self._reconcile(self._consumer)
        return True

    def _count(self) -> int:
        self._send()
        if self._consumer is None:
            sink = "ZCARD" if self._fit.sink_kind == "zset" else "LLEN"
            waiting = int(self._wire.ask("LLEN", self.source)) + int(
                self._wire.ask(sink, self._fit.sink)
            )
            # A daemon that began meanwhile may hold items that are in neither key.
            self._read_record()
            if self._consumer is None:
                return waiting
        if self._reclaimer is not None:
            self._reclaimer.look()
        return self._consumer.count()

    def _reconcile(self, consumer: Consumer) -> None:
        """Requeues deliveries that Redis holds for this consumer, but that this process lacks.

        There are such deliveries if Redis executed a pop late, or if a failover lost an
        acknowledgement.
        """
        held = None if self._heartbeat is None else self._heartbeat.take_held()
        if self._reconciled != self._wire.connects:
            held = consumer.beat()
            self._reconciled = self._wire.connects
        if held is None:
            return
        self._read_record()
        # Redis may have executed the pop with the next number. This pop will be repeated.
        unknown = [each for each in held if each not in self._open and each != self._number]
        if unknown:
            consumer.give_back(unknown)

    def _wait(self) -> None:
        for delivery in list(self._open.values()):
            if delivery.filtered:
                self._outbox.push_early(delivery)
            # The engine may have dropped the last request of the delivery without a signal.
            self._finish_if_over(delivery)
        waiting = self.count()
        if waiting and (waited_s := self._poke.later()):
            in_source = self._attempt(lambda: int(self._wire.ask("LLEN", self.source)), 0)
            if in_source and not self._open:
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
        del self._open[delivery.number]
        self.flush()

    def _check_identity(self) -> None:
        """Ends the crawl if the engine did not get the request object of the last delivery."""
        if self._last is None:
            return
        (delivery, request), self._last = self._last, None
        if not delivery.is_finished and not is_in_progress(self._crawler.engine, request):
            self._end(
                "urlseen_refused",
                f"SCHEDULER is {self._crawler.settings['SCHEDULER']}, which does not pass the"
                " request objects of its queue to Scrapy. So urlseen_scrapy cannot know when they"
                ' are finished. Set SCHEDULER = "scrapy_redis.scheduler.Scheduler"',
            )

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
        kept = self._outbox.size + sum(each.size for each in self._open.values())
        if kept <= KEPT_BYTES or self._has_given_up:
            return
        self._has_given_up = True
        self._outbox.give_up_pages()
        self._end(
            "urlseen_away",
            f"Redis does not take the links that this spider found, and {kept >> 20} MiB of them"
            " wait. Their pages were not acknowledged, and are fetched again",
        )

    def _end(self, reason: str, message: str) -> None:
        if not self._is_ended:
            self._is_ended = True
            logger.error("%s. The crawl ends.", message)
            close_spider(self._crawler, reason)

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
            self._name,
            self._outbox.loose,
        )

    def _count_stat(self, name: str, count: int = 1) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"urlseen/{name}", count)
