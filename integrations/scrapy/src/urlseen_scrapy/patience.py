"""Wait for urlseen inside the reactor's thread."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

logger = logging.getLogger("urlseen_scrapy")

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
REMINDER_S = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Patience:
    """Waits for a server, with growing pauses, and logs that it waits.

    Nothing else happens in the process until the wait is over. Scrapy's handlers of SIGINT and
    SIGTERM only tell the reactor, which cannot hear them. So these signals end the wait, too.
    """

    def __init__(self, whom: str, wait_s: float) -> None:
        self._whom = whom
        self._begun = time.monotonic()
        self._reminded = self._begun
        self._end = self._begun + wait_s if wait_s else float("inf")
        self._pause = FIRST_PAUSE_S
        self.is_told_to_stop = False

    def pause(self, reason: BaseException) -> bool:
        """Waits a little. Returns `False` if the wait is over."""
        now = time.monotonic()
        if self.is_told_to_stop or now >= self._end:
            return False
        if self._pause == FIRST_PAUSE_S or now >= self._reminded + REMINDER_S:
            self._reminded = now
            logger.warning(
                "Waiting for %s for %.0f s; the crawl stands still meanwhile: %s",
                self._whom,
                now - self._begun,
                reason,
            )
        time.sleep(min(self._pause, max(0.0, self._end - now)))
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        return True

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Lets SIGINT and SIGTERM end the wait, and do what they did before as well."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}

        def stop(number: int, frame: FrameType | None) -> None:
            self.is_told_to_stop = True
            if callable(before[number]):
                before[number](number, frame)

        for number, handler in before.items():
            # Python does not know a handler that was set outside it, and could not restore it.
            if handler is not None:
                signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                # Scrapy's handlers replace these.
                if signal.getsignal(number) is stop:
                    signal.signal(number, handler)
