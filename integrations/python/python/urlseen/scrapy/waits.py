"""Waits of a spider: for urlseen, for requests, and while urlseen falls behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from scrapy.utils.reactor import CallLaterOnce

from urlseen.scrapy.settings import logger

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from urlseen._urlseen import Consumer

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
REMINDER_S = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)
FIRST_DELAY_S = 0.01
LONGEST_DELAY_S = 0.5
FIRST_WARNING_S = 15.0
WAKE_REMINDER_S = 60.0
#: Minimum number of seconds between two reads of the length of the source.
LOOK_S = 0.1
#: Minimum number of seconds between two pops while the source is too long. Pops never stop
#: completely, because they make room in the sink, and the daemon may wait for this room.
SLOW_POP_S = 1.0


class Patience:
    """Wait for a server, with growing pauses and a log line every `REMINDER_S` seconds.

    `whom` names the server in log lines. The wait ends after `wait_s` seconds. If `wait_s` is 0,
    it has no time limit. The wait blocks the reactor, so Scrapy's handlers of SIGINT and SIGTERM
    would have no effect until its end. Inside `interruptible`, these signals end the wait.
    """

    def __init__(self, whom: str, wait_s: float) -> None:
        self._whom = whom
        self._begun = time.monotonic()
        self._reminded = self._begun
        self._end = self._begun + wait_s if wait_s else float("inf")
        self._pause = FIRST_PAUSE_S
        self.is_told_to_stop = False

    def pause(self, reason: BaseException) -> bool:
        """Waits until the next attempt. Returns `False` at once if the wait is over.

        `reason` is the error of the last attempt.
        """
        now = time.monotonic()
        if self.is_told_to_stop or now >= self._end:
            return False
        if self._pause == FIRST_PAUSE_S or now >= self._reminded + REMINDER_S:
            self._reminded = now
            logger.warning(
                "Waiting for %s, %.0f s so far; the crawl pauses meanwhile: %s",
                self._whom,
                now - self._begun,
                reason,
            )
        time.sleep(min(self._pause, max(0.0, self._end - now)))
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        return True

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Makes SIGINT and SIGTERM end the wait. Their earlier handlers run as well."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}

        def stop(number: int, frame: FrameType | None) -> None:
            self.is_told_to_stop = True
            if callable(before[number]):
                before[number](number, frame)

        for number, handler in before.items():
            # `None` means that the handler was not set by Python, so Python could not restore it.
            if handler is not None:
                signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                # During the wait, Scrapy's handlers may have replaced the handler `stop`.
                if signal.getsignal(number) is stop:
                    signal.signal(number, handler)


class Wakeup:
    """Timer that makes the engine ask for a request soon, while urlseen has requests.

    By itself, an idle engine asks only every five seconds, but urlseen passes a request on in
    milliseconds. A busy engine asks after each link that it schedules, which is too often.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._call: CallLaterOnce[None] = CallLaterOnce(self._look)
        self._delay = FIRST_DELAY_S
        self._until = 0.0
        self._since: float | None = None
        self._next_warning = FIRST_WARNING_S

    @property
    def is_waiting(self) -> bool:
        """`True` if it is too soon to pop again."""
        return time.monotonic() < self._until

    def later(self) -> float:
        """Makes the engine ask again after a delay, which doubles with each call.

        Returns 0, unless a warning may be due. Then returns the number of seconds for which the
        spider has waited for a request.
        """
        now = time.monotonic()
        self._schedule(now)
        self._delay = min(2 * self._delay, LONGEST_DELAY_S)
        if self._since is None:
            self._since = now
        waited = now - self._since
        return waited if waited >= self._next_warning else 0.0

    def warned(self, waited: float) -> None:
        """Notes that a warning was logged after this wait in seconds."""
        self._next_warning = waited + WAKE_REMINDER_S

    def hurry(self) -> None:
        """Makes the engine ask again soon, because items were sent to urlseen."""
        self._delay = FIRST_DELAY_S
        now = time.monotonic()
        if self._until > now + FIRST_DELAY_S:
            self._call.cancel()
            # A cancelled call cannot be scheduled again.
            self._call = CallLaterOnce(self._look)
            self._schedule(now)

    def came(self) -> None:
        """Notes that a request was popped."""
        self._delay = FIRST_DELAY_S
        self._since = None
        self._next_warning = FIRST_WARNING_S

    def _schedule(self, now: float) -> None:
        self._until = now + self._delay
        self._call.schedule(self._delay)

    def _look(self) -> None:
        self._until = 0.0
        # Scrapy has no public method for this call.
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()


class Throttle:
    """Slows a spider while more than `most` items wait in the source.

    The slowed spider fetches one page at a time, and at most one a second. If `most` is 0, the
    throttle never slows a spider.
    """

    def __init__(self, most: int, source: str) -> None:
        self._most = most
        self._source = source
        self._length = 0
        self._next_look = 0.0
        self._next_pop = 0.0
        self._is_on = False

    def holds(self, consumer: Consumer, *, is_busy: bool) -> bool:
        """Returns `True` if the spider must not pop a request now.

        `is_busy` is true if the spider has unfinished requests. The method reads the length of the
        source from Redis, at most every `LOOK_S` seconds. Raises `Away` or `Refused` if that fails.
        """
        if not self._most:
            return False
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            self._length = consumer.source_len()
        was_on, self._is_on = self._is_on, self._length > self._most
        if not self._is_on:
            return False
        if not was_on:
            logger.warning(
                "%d items wait in %s, more than URLSEEN_SOURCE_MAX: this spider fetches one page a"
                " second until urlseen has caught up",
                self._length,
                self._source,
            )
        if is_busy or now < self._next_pop:
            return True
        self._next_pop = now + SLOW_POP_S
        return False
