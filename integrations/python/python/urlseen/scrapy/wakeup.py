"""Timer that makes Scrapy's engine ask its scheduler for the next request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.utils.reactor import CallLaterOnce

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

FIRST_DELAY_S = 0.01
LONGEST_DELAY_S = 0.5
FIRST_WARNING_S = 15.0
REMINDER_S = 60.0


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

        Returns 0, unless a warning is due. Then returns the number of seconds for which the spider
        has waited for a request.
        """
        now = time.monotonic()
        self._schedule(now)
        self._delay = min(2 * self._delay, LONGEST_DELAY_S)
        if self._since is None:
            self._since = now
        elif now - self._since >= self._next_warning:
            self._next_warning = now - self._since + REMINDER_S
            return now - self._since
        return 0.0

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
