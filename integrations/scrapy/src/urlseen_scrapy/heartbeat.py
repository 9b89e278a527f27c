"""Heartbeat that shows that a consumer is alive."""

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
    """Beats in a thread of its own, over a connection of its own.

    A timer of the reactor does not beat while a callback computes for a minute. The consumer would
    lose its requests although it is alive.
    """

    def __init__(self, consumer: Consumer, wire: Wire, period_s: float) -> None:
        self._consumer = consumer
        self._wire = wire
        self._period_s = period_s
        self._stop = threading.Event()
        self._held: list[int] | None = None
        self._thread = threading.Thread(target=self._run, name="urlseen-heartbeat", daemon=True)
        self._thread.start()

    def take_held(self) -> list[int] | None:
        """Returns the deliveries that Redis held at the last beat, once for each beat."""
        held, self._held = self._held, None
        return held

    def stop(self) -> None:
        """Ends the thread, so that no beat brings the consumer's entry back.

        It does not wait for a beat that waits for Redis.
        """
        self._stop.set()
        self._thread.join(LONGEST_PAUSE_S)

    def _run(self) -> None:
        pause = self._period_s
        while not self._stop.wait(pause):
            pause = self._period_s
            try:
                self._held = self._consumer.beat(self._wire)
            except (Away, Refused) as error:
                pause = min(pause, LONGEST_PAUSE_S)
                logger.debug("A heartbeat of %s failed: %s", self._consumer.name, error)
        self._wire.close()
