"""Pushes and acknowledgements that wait until Redis takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlseen_scrapy.consumer import Consumer, Producer
    from urlseen_scrapy.delivery import Delivery

#: Maximum number of items in one push, and number of bytes that make a push full.
PUSH_ITEMS, PUSH_BYTES = 1000, 1 << 20


class Outbox:
    """Queue of pushes and acknowledgements, in the order in which Redis must execute them.

    If a call fails, it stays in the outbox and is repeated later. A repeated acknowledgement or
    rejection has no effect. A repeated push is safe for filtered items, because the filter drops
    the second copies. An unfiltered item can be pushed twice, but is never lost.

    `count` gets the name of a stat of the crawl, and a number to add to it.
    """

    def __init__(self, count: Callable[..., None]) -> None:
        self._count = count
        # Items that belong to no page: start requests, and requests of extensions.
        self._loose: list[bytes] = []
        self._loose_size = 0
        self._forgotten: list[bytes] = []
        self._calls: deque[tuple[int, Callable[[Consumer], None]]] = deque()
        self._calls_size = 0

    @property
    def size(self) -> int:
        """Size of all waiting items in bytes."""
        return self._loose_size + self._calls_size

    @property
    def loose(self) -> int:
        """Number of waiting items that belong to no page."""
        return len(self._loose)

    @property
    def is_empty(self) -> bool:
        """`True` if nothing waits."""
        return not (self._loose or self._forgotten or self._calls)

    @property
    def is_full(self) -> bool:
        """`True` if there are enough items without a page for one push."""
        return len(self._loose) >= PUSH_ITEMS or self._loose_size >= PUSH_BYTES

    def push(self, item: bytes) -> None:
        """Adds an item that belongs to no page."""
        self._loose.append(item)
        self._loose_size += len(item)

    def forget(self, fingerprint: bytes) -> None:
        """Adds a fingerprint that urlseen must forget."""
        self._forgotten.append(fingerprint)

    def push_early(self, delivery: Delivery) -> None:
        """Adds a push of links of an unfinished page. Unfiltered links wait for the page's end."""
        size = delivery.size
        items = delivery.take_filtered()

        def call(consumer: Consumer) -> None:
            consumer.push(items)
            self._count("sent", len(items))

        self._call(size - delivery.size, call)

    def finish(self, delivery: Delivery) -> None:
        """Adds the acknowledgement of a finished page, with its remaining links."""
        items = delivery.items

        def call(consumer: Consumer) -> None:
            if consumer.finish(delivery.number, items):
                self._count("sent", len(items))
            else:
                self._count("given_to_others")

        self._call(delivery.size, call)

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Adds the rejection of a delivery, with its reason."""

        def call(consumer: Consumer) -> None:
            consumer.reject(delivery.number, delivery.item, reason)

        self._call(len(delivery.item), call)

    def give_up_pages(self) -> None:
        """Drops all links and acknowledgements of pages. Other spiders fetch these pages again."""
        self._calls.clear()
        self._calls_size = 0

    def send_loose(self, producer: Producer) -> None:
        """Sends the items that belong to no page.

        Raises `Away` or `Refused` if a push fails. The unsent items stay in the outbox.
        """
        while self._loose:
            items = self._loose[:PUSH_ITEMS]
            producer.push(items)
            self._count("sent", len(items))
            del self._loose[: len(items)]
            self._loose_size -= sum(map(len, items))

    def send(self, consumer: Consumer) -> None:
        """Sends everything that waits.

        Raises `Away` or `Refused` if a call fails. The unsent part stays in the outbox.
        """
        # These items go first: a callback may have passed such a request to the engine, and the
        # page of the callback must not be acknowledged before Redis has the request.
        self.send_loose(consumer)
        if self._forgotten:
            consumer.forget(self._forgotten)
            self._count("forgotten", len(self._forgotten))
            self._forgotten.clear()
        while self._calls:
            size, call = self._calls[0]
            call(consumer)
            self._calls.popleft()
            self._calls_size -= size

    def _call(self, size: int, call: Callable[[Consumer], None]) -> None:
        self._calls.append((size, call))
        self._calls_size += size
