"""Throttle for a spider that discovers links faster than urlseen reads them."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlseen.scrapy.partitions import Partitions

logger = logging.getLogger("urlseen.scrapy")

#: Minimum number of seconds between two reads of the length of the source.
LOOK_S = 0.1
#: Minimum number of seconds between two pops while the source is too long. Pops never stop
#: completely, because they make room in the sink, and the daemon may wait for this room.
SLOW_POP_S = 1.0


class Throttle:
    """Slows a spider while more than `most` items wait in the source.

    The slowed spider fetches one page at a time, and at most one a second. If `most` is 0, the
    throttle never slows a spider.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._length = 0
        self._next_look = 0.0
        self._next_pop = 0.0
        self._is_on = False

    def holds(self, partitions: Partitions, *, is_busy: bool) -> bool:
        """Returns `True` if the spider must not pop a request now.

        `is_busy` is true if the spider has unfinished requests. The method reads the length of the
        source from Redis, at most every `LOOK_S` seconds. Raises `Away` or `Refused` if that fails.
        """
        if not self._most:
            return False
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            self._length = partitions.source_len()
        was_on, self._is_on = self._is_on, self._length > self._most
        if not self._is_on:
            return False
        if not was_on:
            logger.warning(
                "%d items wait in %s, more than URLSEEN_SOURCE_MAX: this spider fetches one page a"
                " second until urlseen has caught up",
                self._length,
                partitions.source,
            )
        if is_busy or now < self._next_pop:
            return True
        self._next_pop = now + SLOW_POP_S
        return False
