"""Requeues the requests of consumers that have stopped."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlseen_scrapy.consumer import Consumer
    from urlseen_scrapy.wire import Wire

logger = logging.getLogger("urlseen_scrapy")

#: Number of looks at the heartbeats during one time-out, and its minimum. After fewer looks, the
#: time-outs of all consumers start again.
LOOKS, LEAST_LOOKS = 8, 2


class Reclaimer:
    """Detects stopped consumers by their heartbeats, and requeues their requests.

    A consumer has stopped if its heartbeat does not change during the time-out of the crawl record,
    by the clock of this process. While Redis is away, no heartbeat changes. So the time-out starts
    again with each connection, and after each long pause between two looks.
    """

    def __init__(self, consumer: Consumer, wire: Wire) -> None:
        self._consumer = consumer
        self._wire = wire
        self._timeout_s = consumer.record.held_timeout_s
        self._connects = wire.connects
        self._next_look = 0.0
        self._last_look = 0.0
        #: For each consumer: its heartbeat, and the time at which this heartbeat was first seen.
        self._since: dict[str, tuple[str, float]] = {}

    def look(self) -> None:
        """Compares the heartbeats with the earlier ones, and requeues requests if necessary.

        Does nothing if the last look was a short time ago. Raises `Away` or `Refused` if Redis does
        not answer or refuses a command.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + self._timeout_s / LOOKS
        beats = self._consumer.heartbeats()
        last, self._last_look = self._last_look, time.monotonic()
        is_unbroken = self._last_look - last <= self._timeout_s / LEAST_LOOKS
        if self._connects != self._wire.connects or not is_unbroken:
            self._connects = self._wire.connects
            self._since.clear()
        beats.pop(self._consumer.name, None)
        before, self._since = self._since, {}
        for name, beat in beats.items():
            known, since = before.get(name, (beat, now))
            self._since[name] = (beat, since if known == beat else now)
        for name, (beat, since) in list(self._since.items()):
            if now - since >= self._timeout_s:
                self._reclaim(name, beat, now - since)

    def _reclaim(self, name: str, beat: str, still_s: float) -> None:
        requeued, rejected = self._consumer.reclaim(name, beat)
        del self._since[name]
        if requeued or rejected:
            logger.warning(
                "The consumer %s has sent no heartbeat for %.0f s: %d of its requests were"
                " requeued, and %d that were delivered too often went to the rejects in %s",
                name,
                still_s,
                requeued,
                rejected,
                self._consumer.record.rejects,
            )
