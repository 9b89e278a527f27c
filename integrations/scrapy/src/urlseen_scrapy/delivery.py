"""One request that a consumer holds, and the links of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy import Request


class Delivery:
    """A request from the sink, from its pop until all links of its page are in Redis."""

    def __init__(self, number: int, item: bytes) -> None:
        self.number = number
        self.item = item
        self.is_finished = False
        #: Items that the filter judges: they may be pushed before the page is finished.
        self.filtered: list[bytes] = []
        #: Items that pass in any case. They wait for the acknowledgement, so that a page that is
        #: fetched twice does not push them twice.
        self.unfiltered: list[bytes] = []
        #: The size of both in bytes.
        self.size = 0
        # The request made of the item. Nothing else may keep it alive.
        self._requests: list[Request] = []
        # Its links, in a scheduler in memory. A dead reference is a request that was dropped.
        self._children: WeakKeyDictionary[Request, int] = WeakKeyDictionary()

    @property
    def items(self) -> list[bytes]:
        """Links of its page that were not pushed yet."""
        return self.filtered + self.unfiltered

    @property
    def is_over(self) -> bool:
        """`True` if the spider has no request of it any more."""
        return not self._requests and not self._children

    def add(self, request: Request) -> None:
        """Notes the request that was made of the item."""
        self._requests.append(request)

    def add_child(self, request: Request) -> None:
        """Notes a request that came of it and stays in this process."""
        self._children[request] = self._children.get(request, 0) + 1

    def remove(self, request: Request) -> None:
        """Notes that `request` has left the engine."""
        if count := self._children.get(request, 0):
            if count > 1:
                self._children[request] = count - 1
            else:
                del self._children[request]
            return
        self._requests = [each for each in self._requests if each is not request]

    def collect(self, item: bytes, is_filtered: bool) -> None:
        """Keeps an item until it is pushed."""
        (self.filtered if is_filtered else self.unfiltered).append(item)
        self.size += len(item)

    def take_filtered(self) -> list[bytes]:
        """Returns the items that may be pushed early, and removes them here."""
        items, self.filtered = self.filtered, []
        self.size = sum(map(len, self.unfiltered))
        return items
