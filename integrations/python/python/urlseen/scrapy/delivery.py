"""Request that a consumer holds, with the links of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from urlseen._urlseen import Held
    from urlseen.scrapy.partitions import SourceItem


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
        # Unfinished requests that were made from the item, or that its page led to and that stay in
        # this process. This list keeps these objects alive.
        self._requests: list[Request] = []

    @property
    def is_over(self) -> bool:
        """`True` if the spider has finished all requests of this delivery."""
        return not self._requests

    def add(self, request: Request) -> None:
        """Notes a request that must be finished before this delivery."""
        self._requests.append(request)

    def remove(self, request: Request) -> None:
        """Notes that the engine is done with `request`."""
        for index, each in enumerate(self._requests):
            if each is request:
                del self._requests[index]
                return

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
