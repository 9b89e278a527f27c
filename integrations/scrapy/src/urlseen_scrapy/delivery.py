"""Request that a consumer holds, with the links of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy import Request
    from urlseen._urlseen import Held

    from urlseen_scrapy.partitions import SourceItem


class Delivery:
    """Popped request, tracked until Redis has all links of its page."""

    def __init__(self, held: Held) -> None:
        self.held = held
        #: Number of the partition that holds the request.
        self.partition = held.partition
        #: Bytes of the request.
        self.item = held.item
        self.is_finished = False
        #: Links that the filter may drop. They may be pushed before the page is finished.
        self.filtered: list[SourceItem] = []
        #: Links that the filter always lets pass (`dont_filter`). They wait for the
        #: acknowledgement, so that a page that is fetched twice does not push them twice.
        self.unfiltered: list[bytes] = []
        #: Size of all links in both lists, in bytes.
        self.size = 0
        # Unfinished requests that were made from the item. This list keeps these objects alive.
        self._requests: list[Request] = []
        # Links of the page that are in a scheduler in memory. If the scheduler drops a request,
        # the weak reference makes its entry disappear.
        self._children: WeakKeyDictionary[Request, int] = WeakKeyDictionary()

    @property
    def is_over(self) -> bool:
        """`True` if the spider has finished all requests of this delivery."""
        return not self._requests and not self._children

    def add(self, request: Request) -> None:
        """Notes a request that was made from the item."""
        self._requests.append(request)

    def add_child(self, request: Request) -> None:
        """Notes a request that was found on the page, and that stays in this process."""
        self._children[request] = self._children.get(request, 0) + 1

    def remove(self, request: Request) -> None:
        """Notes that the engine is done with `request`."""
        if count := self._children.get(request, 0):
            if count > 1:
                self._children[request] = count - 1
            else:
                del self._children[request]
            return
        self._requests = [each for each in self._requests if each is not request]

    def collect(self, item: SourceItem) -> None:
        """Keeps a link of the page until the link is pushed."""
        self.filtered.append(item)
        self.size += len(item.data)

    def collect_unfiltered(self, data: bytes) -> None:
        """Keeps a link that the filter does not check until the page is acknowledged."""
        self.unfiltered.append(data)
        self.size += len(data)

    def take_filtered(self) -> list[SourceItem]:
        """Returns the links that may be pushed early, and removes them from this delivery."""
        items, self.filtered = self.filtered, []
        self.size = sum(map(len, self.unfiltered))
        return items
