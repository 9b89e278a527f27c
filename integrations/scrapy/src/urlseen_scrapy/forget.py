"""Lets requests that failed be found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest, NotConfigured

from urlseen_scrapy.client import client_of
from urlseen_scrapy.deliveries import deliveries_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self


def forget(request: Request, crawler: Crawler) -> bool:
    """Lets `request` count as unseen: the next link to it passes again.

    So does each request that was redirected to it. For errbacks, among others. Returns `False` if
    urlseen cannot be told, which is logged.

    With a queue of this package or `SendDiscovered` it uses the list that urlseen reads
    (`forget.key`), otherwise urlseen's `[serve]` address.
    """
    fingerprinter = crawler.request_fingerprinter
    if fingerprinter is None:
        raise ValueError("the crawler has no request fingerprinter yet")
    requests = [request]
    requests += [request.replace(url=url) for url in request.meta.get("redirect_urls", [])]
    fingerprints = [fingerprinter.fingerprint(each).hex() for each in requests]
    teller = deliveries_of(crawler) or client_of(crawler)
    told = [teller.forget(each) for each in fingerprints]
    return all(told)


class ForgetFailed:
    """A downloader middleware that forgets requests that have failed for good.

    Such a request ended in an exception other than `IgnoreRequest`, or in a response with one of
    `RETRY_HTTP_CODES`, and was not tried again. The middleware has to stand before
    `RetryMiddleware`, which is at 550.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("URLSEEN_FORGET_FAILED", True):
            raise NotConfigured("URLSEEN_FORGET_FAILED is false")
        self._crawler = crawler
        self._statuses = {int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the middleware for a crawler; Scrapy calls this."""
        return cls(crawler)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        """Forgets a request that the server could not answer."""
        if response.status in self._statuses:
            forget(request, self._crawler)
        return response

    def process_exception(
        self, request: Request, exception: Exception, spider: Spider | None = None
    ) -> None:
        """Forgets a request that could not be fetched."""
        if not isinstance(exception, IgnoreRequest):
            forget(request, self._crawler)
