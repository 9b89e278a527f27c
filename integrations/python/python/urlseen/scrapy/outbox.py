"""Pushes and acknowledgements that wait until Redis takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from urlseen._urlseen import Away, Refused

if TYPE_CHECKING:
    from urlseen.scrapy.partitions import Delivery, Partitions

#: Items by partition.
Items = dict[int, list[bytes]]

#: Maximum number of items in one push, and number of bytes that make a push full.
PUSH_ITEMS, PUSH_BYTES = 1000, 1 << 20


class _End(NamedTuple):
    """Acknowledgement or rejection of a delivery, and the size of its items in bytes."""

    delivery: Delivery
    size: int
    run: Callable[[], object]


class _Call(NamedTuple):
    """Items that wait for their partitions, and the end of a delivery that waits for the items."""

    items: Items
    end: _End | None


class Outbox:
    """Pushes and acknowledgements that wait until Redis takes them.

    If a partition is away, everything for it stays in the outbox in its order, and is sent later.
    An acknowledgement also waits for the links of its page. Everything else is sent. A repeated
    acknowledgement or rejection has no effect. A repeated push is safe for filtered items, because
    the filter drops the second copies. An unfiltered item can be pushed twice, but is never lost.

    `count` gets the name of a stat of the crawl, and a number to add to it.
    """

    def __init__(self, partitions: Partitions, count: Callable[..., None]) -> None:
        self._partitions = partitions
        self._count = count
        # Items that belong to no page: start requests, and requests of extensions.
        self._loose: Items = {}
        self._forgotten: Items = {}
        self._calls: list[_Call] = []
        # Calls of pages that were given up, which this process still holds.
        self._given_up: list[_Call] = []
        # Number and size of the loose items that were added after the last call of `send`.
        self._new_items = self._new_bytes = 0
        # Partitions that failed during this call of `send`, with their errors.
        self._failed: dict[int, Away] = {}
        #: Size of all waiting items in bytes.
        self.size = 0
        #: Error of a partition for which something waits after a call of `send`, or `None`.
        self.away: Away | None = None

    @property
    def loose(self) -> int:
        """Number of waiting items that belong to no page."""
        return count(self._loose)

    @property
    def is_empty(self) -> bool:
        """`True` if nothing waits."""
        return not (self._loose or self._forgotten or self._calls)

    @property
    def is_full(self) -> bool:
        """`True` if there are enough new items without a page for one push."""
        return self._new_items >= PUSH_ITEMS or self._new_bytes >= PUSH_BYTES

    def push(self, partition: int, data: bytes) -> None:
        """Adds an item that belongs to no page."""
        self._loose.setdefault(partition, []).append(data)
        self._new_items += 1
        self._new_bytes += len(data)
        self.size += len(data)

    def forget(self, partition: int, fingerprint: bytes) -> None:
        """Adds a fingerprint that urlseen must forget."""
        self._forgotten.setdefault(partition, []).append(fingerprint)

    def push_early(self, delivery: Delivery) -> None:
        """Adds a push of links of an unfinished page. Unfiltered links wait for the page's end."""
        self._call(delivery.take_filtered(), None)

    def finish(self, delivery: Delivery) -> None:
        """Adds the acknowledgement of a finished page, with its remaining links.

        All other partitions must have taken their links before one script pushes the links of the
        page's own partition and acknowledges the page. Unfiltered links may go to any partition. They
        go to the page's own one, so that they are pushed only with the acknowledgement.
        """
        others = delivery.take_filtered()
        own = [*others.pop(delivery.partition, []), *delivery.unfiltered]

        def finish() -> None:
            if self._partitions.finish(delivery.held, own):
                self._count("sent", len(own))
            else:
                self._count("given_to_others")

        self._call(others, _End(delivery, sum(map(len, own)), finish))

    def reject(self, delivery: Delivery, reason: str) -> None:
        """Adds the rejection of a delivery, with its reason."""

        def reject() -> None:
            self._partitions.reject(delivery.held, reason)

        self._call({}, _End(delivery, len(delivery.item), reject))

    def give_up_pages(self) -> None:
        """Drops all links and acknowledgements of pages. Other spiders fetch these pages again."""
        self._given_up, self._calls = self._calls, []
        self.size = _size(self._loose)

    def send(self) -> None:
        """Sends everything that may be sent. A partition without a crawl record gets only items.

        If a partition does not answer, sets `away`. Raises `Refused` if a command is refused.
        """
        self.away = None
        self._failed.clear()
        self._new_items = self._new_bytes = 0
        # These items go first: a callback may have passed such a request to the engine, and the
        # page of the callback must not be acknowledged before Redis has the request.
        self._push(self._loose)
        self._send_forgotten()
        self._calls = [each for each in self._calls if not self._is_done(each)]

    def _send_forgotten(self) -> None:
        records, forgotten = self._partitions.records, self._forgotten.items()
        known = {each: keys for each, keys in forgotten if records[each] is not None}
        ready = {each: keys for each, keys in known.items() if not self._fails(each)}
        for told in self._taken(list(ready), self._partitions.forget(ready)):
            self._count("forgotten", len(self._forgotten.pop(told)))

    def _is_done(self, call: _Call) -> bool:
        """Sends a call. Returns `False` if a part of it still waits."""
        if not self._push(call.items):
            return False
        if call.end is None:
            return True
        delivery = call.end.delivery
        if self._loose or self._fails(delivery.partition):
            return False
        try:
            call.end.run()
        except Away as away:
            self._failed[delivery.partition] = self.away = away
            return False
        self.size -= call.end.size
        return True

    def _push(self, items: Items) -> bool:
        """Pushes items to all their partitions at the same time, and waits for every answer.

        Removes the items that Redis has taken. Returns `False` if some are left.
        """
        while ready := [each for each in items if not self._fails(each)]:
            answers = self._partitions.push({each: items[each][:PUSH_ITEMS] for each in ready})
            for partition in self._taken(ready, answers):
                taken = items[partition][:PUSH_ITEMS]
                del items[partition][:PUSH_ITEMS]
                if not items[partition]:
                    del items[partition]
                self.size -= sum(map(len, taken))
                self._count("sent", len(taken))
        return not items

    def _fails(self, partition: int) -> bool:
        """Returns `True` if a command for the partition would fail now. Sets `away` then."""
        away = self._failed.get(partition)
        if away is None and (reason := self._partitions.rests(partition)) is not None:
            away = Away(reason)
        elif away is None and self._failed and self._partitions.is_away():
            away = next(iter(self._failed.values()))
        self.away = away or self.away
        return away is not None

    def _taken(self, partitions: list[int], answers: list[object]) -> Iterator[int]:
        """Yields those of the partitions that have executed their commands.

        Then raises `Refused` if a command was refused.
        """
        refused = None
        for partition, answer in zip(partitions, answers):
            if isinstance(answer, Away):
                self._failed[partition] = self.away = answer
            elif isinstance(answer, Refused):
                refused = answer
            else:
                yield partition
        if refused is not None:
            raise refused

    def _call(self, items: Items, end: _End | None) -> None:
        self._calls.append(_Call(items, end))
        self.size += _size(items)
        if end is not None:
            self.size += end.size


def count(items: Items) -> int:
    """Returns the number of items of all partitions."""
    return sum(map(len, items.values()))


def _size(items: Items) -> int:
    return sum(len(data) for each in items.values() for data in each)
