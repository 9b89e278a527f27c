"""Heartbeat of a consumer: a counter in Redis that shows that the consumer is alive."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from urlseen_scrapy.patience import LONGEST_PAUSE_S
from urlseen_scrapy.wire import Away, Refused

if TYPE_CHECKING:
    from urlseen_scrapy.consumer import Consumer
    from urlseen_scrapy.wire import Wire

logger = logging.getLogger("urlseen_scrapy")


class Heartbeat:
    """Thread that increments the heartbeats of consumers, over its own connection `wire`.

    A timer of the reactor would not suffice: it does not run while a callback computes for a
    minute. Then the consumer would seem to have stopped, and its requests would be requeued.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._period_s = float("inf")
        self._consumers: list[Consumer] = []
        self._held: dict[Consumer, list[int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="urlseen-heartbeat", daemon=True)

    def add(self, consumer: Consumer, period_s: float) -> None:
        """Begins to increment the heartbeat of a consumer, at least every `period_s` seconds.

        Does nothing if the thread does so already.
        """
        if consumer in self._consumers:
            return
        self._period_s = min(self._period_s, period_s)
        self._consumers.append(consumer)
        if len(self._consumers) == 1:
            self._thread.start()

    def take_held(self, consumer: Consumer) -> list[int] | None:
        """Returns the deliveries that Redis held for a consumer at its last beat.

        Returns `None` if there was no beat since the last call.
        """
        return self._held.pop(consumer, None)

    def stop(self) -> None:
        """Ends the thread. A later beat would create the consumer's entry in Redis again.

        The method waits for the end of the thread, for at most `LONGEST_PAUSE_S` seconds.
        """
        self._stop.set()
        if self._consumers:
            self._thread.join(LONGEST_PAUSE_S)

    def _run(self) -> None:
        pause = self._period_s
        while not self._stop.wait(pause):
            pause = self._period_s
            # The reactor may add consumers meanwhile.
            for consumer in list(self._consumers):
                try:
                    self._held[consumer] = consumer.beat(self._wire)
                except (Away, Refused) as error:
                    pause = min(self._period_s, LONGEST_PAUSE_S)
                    logger.debug("A heartbeat of %s failed: %s", consumer.name, error)
                    break
        self._wire.close()
