"""Function and middleware that make urlseen forget failed requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest, NotConfigured

from urlseen.scrapy.client import client_of
from urlseen.scrapy.fingerprinter import fingerprinter_of
from urlseen.scrapy.pages import pages_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self


def forget(request: Request, crawler: Crawler) -> bool:
    """Makes urlseen forget `request`, so that the next link to it passes again.

    urlseen also forgets each request that was redirected to `request`. Example of an errback:

        def failed(self, failure):
            urlseen.scrapy.forget(failure.request, self.crawler)

    With the scheduler of this package, the function uses the list `forget.key` in Redis. Otherwise
    it uses urlseen at `URLSEEN_ASK_URL`, and waits for the answer. Returns `False` and
    logs a warning if urlseen does not answer or its filter cannot forget. Raises `ValueError` if a
    setting is wrong.
    """
    requests = [request]
    requests += [request.replace(url=url) for url in request.meta.get("redirect_urls", [])]
    fingerprints = [fingerprinter_of(crawler).fingerprint(each).hex() for each in requests]
    teller = pages_of(crawler) or client_of(crawler)
    told = [teller.forget(each) for each in fingerprints]
    return all(told)


class ForgetFailed:
    """Downloader middleware that makes urlseen forget requests that have finally failed.

    A request has finally failed if it ended in an exception other than `IgnoreRequest`, or in a
    response with one of `RETRY_HTTP_CODES`, and Scrapy does not retry it. The number of the
    middleware must be below 550, the number of `RetryMiddleware`:

        DOWNLOADER_MIDDLEWARES = {"urlseen.scrapy.ForgetFailed": 50}

    The constructor raises `NotConfigured` if `URLSEEN_FORGET_FAILED` is false.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.getbool("URLSEEN_FORGET_FAILED", True):
            raise NotConfigured("URLSEEN_FORGET_FAILED is false")
        self._crawler = crawler
        self._statuses = {int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the middleware for a crawler. Scrapy calls this method."""
        return cls(crawler)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        """Forgets a request if the status of its response is one of `RETRY_HTTP_CODES`."""
        if response.status in self._statuses:
            forget(request, self._crawler)
        return response

    def process_exception(
        self, request: Request, exception: Exception, spider: Spider | None = None
    ) -> None:
        """Forgets a request whose download ended in an exception."""
        if not isinstance(exception, IgnoreRequest):
            forget(request, self._crawler)
