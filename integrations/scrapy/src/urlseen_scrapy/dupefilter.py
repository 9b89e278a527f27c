"""Classes for the setting `DUPEFILTER_CLASS`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.request import referer_str

from urlseen_scrapy.client import Client, client_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class DupeFilter(BaseDupeFilter):
    """Asks urlseen if a request has been seen, and has it remembered.

    For Scrapy's scheduler and for that of scrapy-redis. Both ask before they go on, so the
    reactor stands still for the round trip.
    """

    def __init__(
        self, client: Client, fingerprinter: RequestFingerprinterProtocol, debug: bool = False
    ) -> None:
        self._client = client
        self._fingerprinter = fingerprinter
        self.debug = debug
        self.logdupes = True

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the filter for a crawler; Scrapy's scheduler calls this."""
        fingerprinter = crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        return cls(client_of(crawler), fingerprinter, debug)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Makes the filter for a spider. The scheduler of scrapy-redis does not open it."""
        dupefilter = cls.from_crawler(spider.crawler)
        dupefilter.open()
        return dupefilter

    def open(self) -> None:
        """Raises an error if urlseen does not answer, unless `URLSEEN_WHEN_AWAY` permits that."""
        self._client.open()

    def request_seen(self, request: Request) -> bool:
        """Returns `True` if the request has been seen, and adds it."""
        return not self._client.is_new(self._fingerprinter.fingerprint(request).hex())

    def close(self, reason: str) -> None:
        """Ends the connection. The filter keeps all requests."""
        self._client.close()

    def clear(self) -> None:
        """Refuses: scrapy-redis calls this to begin a crawl anew."""
        logger.info(
            "urlseen remembers what was seen: a spider does not empty its filter, whatever"
            " SCHEDULER_PERSIST and SCHEDULER_FLUSH_ON_START say. To begin anew, stop the daemon"
            " and give the command: urlseen storage reset"
        )

    def log(self, request: Request, spider: Spider) -> None:
        """Logs and counts a seen request, as `scrapy.dupefilters.RFPDupeFilter` does."""
        if self.debug:
            logger.debug(
                "Filtered duplicate request: %(request)s (referer: %(referer)s)",
                {"request": request, "referer": referer_str(request)},
                extra={"spider": spider},
            )
        elif self.logdupes:
            logger.debug(
                "Filtered duplicate request: %(request)s"
                " - no more duplicates will be shown"
                " (see DUPEFILTER_DEBUG to show all duplicates)",
                {"request": request},
                extra={"spider": spider},
            )
            self.logdupes = False
        stats = spider.crawler.stats
        if stats is not None:
            stats.inc_value("dupefilter/filtered")


class NoDupeFilter(BaseDupeFilter):
    """Passes every request: for a queue of this package, after which urlseen judges.

    `scrapy.dupefilters.BaseDupeFilter` lacks what the scheduler of scrapy-redis calls.
    """

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Makes the filter; the scheduler of scrapy-redis calls this."""
        return cls()

    def clear(self) -> None:
        """Does nothing: there is nothing to clear."""
