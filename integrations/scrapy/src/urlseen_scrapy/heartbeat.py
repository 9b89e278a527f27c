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
    """Thread that increments the heartbeat of a consumer every `period_s` seconds.

    The thread uses its own connection, `wire`. A timer of the reactor would not suffice: it does
    not run while a callback computes for a minute. Then the consumer would seem to have stopped,
    and its requests would be requeued.
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
        """Returns the deliveries that Redis held at the last beat.

        Returns `None` if there was no beat since the last call.
        """
        held, self._held = self._held, None
        return held

    def stop(self) -> None:
        """Ends the thread. A later beat would create the consumer's entry in Redis again.

        The method waits for the end of the thread, for at most `LONGEST_PAUSE_S` seconds.
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
