"""Asking the scheduler for a request again before Scrapy would."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from scrapy.utils.reactor import CallLaterOnce

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger("urlseen_scrapy")

FIRST_DELAY_S = 0.01
LONGEST_DELAY_S = 0.5
FIRST_WARNING_S = 15.0
REMINDER_S = 60.0


class Poke:
    """Makes the engine look for a request soon, while some are on their way through urlseen.

    An idle engine looks every five seconds, and a request is through after a millisecond.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._call: CallLaterOnce[None] = CallLaterOnce(self._look)
        self._delay = FIRST_DELAY_S
        self._since: float | None = None
        self._next_warning = FIRST_WARNING_S

    def later(self, waiting: int, where: str) -> None:
        """`waiting` requests are on their way, and none has come."""
        self._call.schedule(self._delay)
        self._delay = min(2 * self._delay, LONGEST_DELAY_S)
        now = time.monotonic()
        if self._since is None:
            self._since = now
        elif now - self._since >= self._next_warning:
            self._next_warning = now - self._since + REMINDER_S
            logger.warning(
                "No request has come for %.0f s, although %d wait in %s. Is urlseen running?",
                now - self._since,
                waiting,
                where,
            )

    def came(self) -> None:
        """A request has come."""
        self._delay = FIRST_DELAY_S
        self._since = None
        self._next_warning = FIRST_WARNING_S

    def _look(self) -> None:
        # Scrapy has no public name for it.
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()
