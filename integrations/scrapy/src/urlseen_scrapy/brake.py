"""Slowing a spider that is far ahead of urlseen."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlseen_scrapy.consumer import Consumer

logger = logging.getLogger("urlseen_scrapy")

#: Time between two questions for the length of the source.
LOOK_S = 0.1
#: Shortest time between two pops while the source is too long. Pops never stop, because a daemon
#: that waits for room in the sink needs them to continue.
SLOW_POP_S = 1.0


class Brake:
    """Lets a spider fetch one page at a time while more than `most` items wait in the source."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._length = 0
        self._next_look = 0.0
        self._next_pop = 0.0
        self._is_on = False

    def holds(self, consumer: Consumer, *, is_busy: bool) -> bool:
        """Returns `True` if it is too soon for a pop. Raises `Away` or `Refused`."""
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
                consumer.record.source,
            )
        if is_busy or now < self._next_pop:
            return True
        self._next_pop = now + SLOW_POP_S
        return False
