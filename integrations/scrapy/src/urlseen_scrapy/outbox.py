"""Pushes and acknowledgements that wait until Redis takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from urlseen_scrapy.wires import Question, ask_all, try_all

if TYPE_CHECKING:
    from urlseen_scrapy.consumer import Consumer
    from urlseen_scrapy.delivery import Delivery
    from urlseen_scrapy.partition import Partition, SourceItem

#: Maximum number of items in one push, and number of bytes that make a push full.
PUSH_ITEMS, PUSH_BYTES = 1000, 1 << 20


class _Call(NamedTuple):
    """Call that waits, and the size of its items in bytes."""

    size: int
    run: Callable[[], None]


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
        self._loose: list[SourceItem] = []
        self._loose_size = 0
        self._forgotten: list[SourceItem] = []
        self._calls: deque[_Call] = deque()
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

    def push(self, item: SourceItem) -> None:
        """Adds an item that belongs to no page."""
        self._loose.append(item)
        self._loose_size += len(item.data)

    def forget(self, fingerprint: SourceItem) -> None:
        """Adds a fingerprint that urlseen must forget."""
        self._forgotten.append(fingerprint)

    def push_early(self, delivery: Delivery) -> None:
        """Adds a push of links of an unfinished page. Unfiltered links wait for the page's end."""
        size = delivery.size
        items = delivery.take_filtered()
        self._call(size - delivery.size, lambda: self._push(items))

    def finish(self, delivery: Delivery) -> None:
        """Adds the acknowledgement of a finished page, with its remaining links.

        All other partitions must have taken their links before one script pushes the links of the
        page's own partition and acknowledges the page. Unfiltered links may go to any partition. They
        go to the page's own one, so that they are pushed only with the acknowledgement.
        """
        home = delivery.partition
        own = [each.data for each in delivery.filtered if each.partition is home]
        own += delivery.unfiltered
        others = [each for each in delivery.filtered if each.partition is not home]

        def finish() -> None:
            self._push(others)
            if _consumer(home).finish(delivery.number, own):
                self._count("sent", len(own))
            else:
                self._count("given_to_others")

        self._call(delivery.size, finish)

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Adds the rejection of a delivery, with its reason."""

        def reject() -> None:
            _consumer(delivery.partition).reject(delivery.number, delivery.item, reason)

        self._call(len(delivery.item), reject)

    def give_up_pages(self) -> None:
        """Drops all links and acknowledgements of pages. Other spiders fetch these pages again."""
        self._calls.clear()
        self._calls_size = 0

    def send(self) -> None:
        """Sends everything that may be sent. A partition without a crawl record gets only items.

        Raises `Away` or `Refused` if a call fails. The unsent part stays in the outbox.
        """
        # These items go first: a callback may have passed such a request to the engine, and the
        # page of the callback must not be acknowledged before Redis has the request.
        self._send_loose()
        self._send_forgotten()
        while self._calls:
            self._calls[0].run()
            self._calls_size -= self._calls.popleft().size

    def _send_loose(self) -> None:
        while self._loose:
            items = self._loose[:PUSH_ITEMS]
            del self._loose[:PUSH_ITEMS]
            self._loose_size -= _size(items)
            try:
                self._push(items)
            finally:
                self._loose[:0] = items
                self._loose_size += _size(items)

    def _send_forgotten(self) -> None:
        ready = [each for each in self._forgotten if each.partition.consumer is not None]
        if ready:
            ask_all(_consumer(each).forget(keys) for each, keys in _by_partition(ready).items())
            self._count("forgotten", len(ready))
            self._forgotten = [each for each in self._forgotten if each.partition.consumer is None]

    def _push(self, items: list[SourceItem]) -> None:
        """Pushes items to all their partitions at the same time, and waits for every answer.

        Removes the items that Redis has taken from the list. Raises `Away` or `Refused` if a push
        fails.
        """
        groups = _by_partition(items)
        pushes: list[Question] = [each.producer.push(data) for each, data in groups.items()]
        answers = dict(zip(groups, try_all(pushes)))
        errors = {each: answer for each, answer in answers.items() if isinstance(answer, Exception)}
        before = len(items)
        items[:] = [each for each in items if each.partition in errors]
        self._count("sent", before - len(items))
        for error in errors.values():
            raise error

    def _call(self, size: int, run: Callable[[], None]) -> None:
        self._calls.append(_Call(size, run))
        self._calls_size += size


def _size(items: list[SourceItem]) -> int:
    return sum(len(item.data) for item in items)


def _by_partition(items: list[SourceItem]) -> dict[Partition, list[bytes]]:
    groups: dict[Partition, list[bytes]] = {}
    for item in items:
        groups.setdefault(item.partition, []).append(item.data)
    return groups


def _consumer(partition: Partition) -> Consumer:
    """Returns the calls of a partition from which a request was popped."""
    if partition.consumer is None:
        raise ValueError(f"no urlseen has run for {partition.source} yet")
    return partition.consumer
