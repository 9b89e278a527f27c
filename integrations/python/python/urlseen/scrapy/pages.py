"""Requests in work, and the pages that lead to further requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from urlseen.scrapy.engine import close_spider, watch_engine
from urlseen.scrapy.settings import logger

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_pages: WeakKeyDictionary[Crawler, Pages[Any]] = WeakKeyDictionary()


def pages_of(crawler: Crawler) -> Pages[Any] | None:
    """Returns the pages of a crawl, or `None` if it has no scheduler of this package."""
    return _pages.get(crawler)


class Page:
    """Popped request, tracked until all links of its page are recorded."""

    def __init__(self, item: Any) -> None:
        #: Request in the form in which it was stored.
        self.item = item
        self.is_finished = False
        # Unfinished requests that were made from the item, or that its page led to and that stay in
        # this process. This list keeps these objects alive.
        self._requests: list[Request] = []

    @property
    def is_over(self) -> bool:
        """`True` if the spider has finished all requests of this page."""
        return not self._requests

    def add(self, request: Request) -> None:
        """Notes a request that must be finished before this page."""
        self._requests.append(request)

    def remove(self, request: Request) -> None:
        """Notes that the engine is done with `request`."""
        for index, each in enumerate(self._requests):
            if each is request:
                del self._requests[index]
                return


P = TypeVar("P", bound=Page)


class Pages(Generic[P]):
    """Tracks the requests that the engine works on, and finds the page that led to a request.

    A subclass has the queue. All methods run in the thread of the reactor.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._owners: WeakKeyDictionary[Request, P] = WeakKeyDictionary()
        self._is_watching = self._is_ended = False
        _pages[crawler] = self

    def is_seen(self, request: Request, fingerprint: bytes) -> bool:
        """Returns `True` if the request is certainly seen, so that it need not be collected."""
        return False

    def collect(self, request: Request, item: bytes, fingerprint: bytes) -> None:
        """Keeps a request for the queue, in the form `item`."""
        raise NotImplementedError

    def pop(self) -> P | None:
        """Pops the next unseen request. Returns `None` if there is none now."""
        raise NotImplementedError

    def reject(self, page: P, reason: str) -> None:
        """Puts a page aside, because no request can be made from its item."""
        raise NotImplementedError

    def count(self) -> int:
        """Returns a number above 0 if requests wait."""
        raise NotImplementedError

    def forget(self, fingerprint: str) -> bool:
        """Lets a fingerprint (hex digits) pass once more. Returns `False` if that cannot be."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the queue. Unfinished requests are popped again later."""
        raise NotImplementedError

    def took(self, page: P, request: Request) -> None:
        """Notes that `request` was made from the page and goes to the engine."""
        page.add(request)
        self._owners[request] = page

    def keep(self, request: Request) -> None:
        """Notes that `request` stays in this process. Its page is not finished before it."""
        page = self._page(request)
        if page is not None:
            page.add(request)

    def led_to(self, request: Request, child: Request) -> None:
        """Notes that the page or the failure of `request` led to the request `child`."""
        page = self._page(request)
        if page is not None:
            self._owners[child] = page

    def left(self, request: Request) -> None:
        """Notes that the engine is done with `request`, and finishes its page if possible."""
        page = self._page(request)
        if page is not None:
            page.remove(request)
            self._finish_if_over(page)

    def _page(self, request: Request) -> P | None:
        """Returns the unfinished page that led to `request`."""
        page = self._owners.get(request)
        return None if page is None or page.is_finished else page

    def _finish_if_over(self, page: P) -> None:
        """Records the end of a page and its links, if no request of it is left."""
        raise NotImplementedError

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            watch_engine(self._crawler.engine, self)

    def _end(self, reason: str, message: str) -> None:
        if not self._is_ended:
            self._is_ended = True
            logger.error("%s. The crawl ends.", message)
            close_spider(self._crawler, reason)

    def _count_stat(self, name: str, count: int = 1) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"urlseen/{name}", count)
