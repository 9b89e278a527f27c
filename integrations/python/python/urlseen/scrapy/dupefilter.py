"""Dupefilter that asks urlseen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.dupefilters import RFPDupeFilter

from urlseen.scrapy.client import client_of
from urlseen.scrapy.fingerprinter import fingerprinter_of, returns
from urlseen.scrapy.record import follow
from urlseen.scrapy.settings import refusal

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class DupeFilter(RFPDupeFilter):
    """Dupefilter that asks urlseen if a request is new, and adds it to urlseen's filter.

    It works with the scheduler of Scrapy and with that of scrapy-redis:

        DUPEFILTER_CLASS = "urlseen.scrapy.DupeFilter"
        URLSEEN_ASK_URL = "redis://127.0.0.1:6390"

    The scheduler waits for each answer, so the reactor is blocked for the time of a round trip.
    `URLSEEN_WHEN_AWAY` decides what happens if urlseen does not answer. `from_crawler` raises
    `ValueError` if a setting is wrong.
    """

    def __init__(
        self, crawler: Crawler, fingerprinter: RequestFingerprinterProtocol, debug: bool = False
    ) -> None:
        super().__init__(debug=debug, fingerprinter=fingerprinter)
        self._crawler = crawler
        self._client = client_of(crawler)
        self._fingerprinter = fingerprinter

    @classmethod
    @refusal()
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the filter for a crawler. Scrapy's scheduler calls this method."""
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        return cls(crawler, fingerprinter_of(crawler), debug)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Makes and opens the filter. The scheduler of scrapy-redis calls this method."""
        dupefilter = cls.from_crawler(spider.crawler)
        dupefilter.open()
        return dupefilter

    @refusal()
    def open(self) -> None:
        """Connects to urlseen.

        Raises `RuntimeError` if urlseen refuses the key. Also raises it if urlseen does not answer,
        unless `URLSEEN_WHEN_AWAY` is `"pass"`. Raises `ValueError` if the fingerprinter computes
        other fingerprints than the crawl has.
        """
        found = self._client.open()
        if found is not None:
            follow(found, self._crawler)

    def request_seen(self, request: Request) -> bool:
        """Returns `True` if the request has been seen. Adds it to the filter otherwise.

        A redirect back to a URL of its own chain always passes.
        """
        if returns(request, self._fingerprinter):
            self._client.count("returned")
            return False
        return not self._client.is_new(self._fingerprinter.fingerprint(request).hex())

    def close(self, reason: str) -> None:
        """Closes the connection. The filter keeps all requests."""
        self._client.close()

    def clear(self) -> None:
        """Logs that a spider cannot empty urlseen's filter. scrapy-redis calls this method."""
        logger.info(
            "urlseen keeps all seen requests: a spider does not empty its filter, and"
            " SCHEDULER_PERSIST and SCHEDULER_FLUSH_ON_START have no effect. To begin anew, stop"
            " the daemon and run: urlseen storage reset"
        )
