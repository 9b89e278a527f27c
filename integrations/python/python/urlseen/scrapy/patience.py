"""Wait for urlseen, in the thread of the reactor."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

logger = logging.getLogger("urlseen.scrapy")

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
REMINDER_S = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
