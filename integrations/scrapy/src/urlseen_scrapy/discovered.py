"""Spider middleware that sends discovered requests to urlseen instead of the scheduler."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.utils.misc import load_object

from urlseen_scrapy.deliveries import Deliveries
from urlseen_scrapy.keys import sink_key
from urlseen_scrapy.record import Fit
from urlseen_scrapy.settings import spider_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider
    from typing_extensions import Self

    from urlseen_scrapy.delivery import Delivery

logger = logging.getLogger(__name__)


class SendDiscovered:
    """A spider middleware for spiders that read their requests from urlseen's sink.

    It is for the RedisSpiders of scrapy-redis, whose `redis_key` is the sink. urlseen fills it with
    `sink.emit = "start-url"`: URL, method and meta. A request with more than that goes to the
    scheduler as before: with a body, headers, cookies, a callback other than `parse`, or a meta
    that is not the same after JSON. The header `Referer` is not counted, and is lost.

    The spider holds each item until all requests that came of it are sent or fetched.
    """

    def __init__(self, crawler: Crawler) -> None:
        # scrapy-redis is optional for a project without RedisSpiders.
        from scrapy_redis.connection import from_settings

        fingerprinter = crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
        self._crawler = crawler
        self._fingerprinter = fingerprinter
        self._has_said_why = False
        _check_scheduler(crawler.settings)
        spider: Any = crawler.spider
        sink = sink_key(crawler.settings, spider_name(crawler))
        redis_key = getattr(spider, "redis_key", None)
        name, setting = type(self).__name__, "URLSEEN_SINK_KEY"
        if redis_key is not None and redis_key != sink:
            raise ValueError(
                f"REDIS_START_URLS_KEY: the spider reads {redis_key}, and URLSEEN_SINK_KEY is"
                f" {sink}. Both name urlseen's sink.key"
            )
        fit = Fit(name, "start-url", "list", sink, setting)
        self.deliveries = Deliveries(
            crawler, from_settings(crawler.settings), fit, keeps_children=True
        )
        if redis_key is not None:
            _Reading(spider, self.deliveries).begin()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the middleware for a crawler; Scrapy calls this."""
        return cls(crawler)

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Sends requests to urlseen, and passes all other results on."""
        for each in result:
            if not self._takes(each, response):
                yield each

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Does the same for an asynchronous callback."""
        async for each in result:
            if not self._takes(each, response):
                yield each

    def item(self, request: Request) -> bytes | None:
        """Returns the item for urlseen, or `None` if it would lose a part of the request."""
        why_not = self._why_not(request)
        if why_not is not None:
            self._count("scheduled")
            if not self._has_said_why:
                self._has_said_why = True
                logger.info(
                    "%s goes to the scheduler, as urlseen could not pass on its %s;"
                    " no more such requests will be shown",
                    request,
                    why_not,
                )
            return None
        fields: dict[str, Any] = {"url": request.url}
        if request.method != "GET":
            fields["method"] = request.method
        if request.meta:
            fields["meta"] = request.meta
        if request.dont_filter:
            fields["dont_filter"] = True
        if request.priority:
            fields["priority"] = request.priority
        fields["fingerprint"] = self._fingerprinter.fingerprint(request).hex()
        return json.dumps(fields).encode()

    def _takes(self, each: Any, response: Response) -> bool:
        item = self.item(each) if isinstance(each, Request) else None
        if item is None:
            return False
        self.deliveries.collect(each, item, page=response.request)
        return True

    def _why_not(self, request: Request) -> str | None:
        """Returns the part of the request that an item would lose, or `None`."""
        callback = request.callback
        if callback is not None and callback != getattr(self._crawler.spider, "parse", None):
            return "callback"
        for name in ("errback", "body", "cookies", "cb_kwargs", "flags"):
            if getattr(request, name):
                return name
        if any(name.lower() != b"referer" for name in request.headers):
            return "headers"
        return None if _is_json(request.meta) else "meta"

    def _count(self, what: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"urlseen/{what}")


class _Reading:
    """Gives a RedisSpider held requests in place of those that it pops by itself."""

    def __init__(self, spider: Any, deliveries: Deliveries) -> None:
        self._spider = spider
        self._deliveries = deliveries
        self._make: Any = spider.make_request_from_data

    def begin(self) -> None:
        """Replaces the spider's own methods."""
        self._spider.fetch_data = self._fetch
        self._spider.make_request_from_data = self._request
        self._spider.count_size = lambda _: self._deliveries.count()

    def _fetch(self, redis_key: str, batch_size: int) -> Iterator[Delivery]:
        for _ in range(batch_size):
            delivery = self._deliveries.pop()
            if delivery is None:
                return
            yield delivery

    def _request(self, delivery: Delivery) -> list[Request]:
        try:
            made = self._make(delivery.item)
            requests = [made] if isinstance(made, Request) else list(made or ())
        except Exception as error:
            logger.exception("An item of urlseen is no request: %r", delivery.item[:1000])
            reason = f"the spider {self._spider.name} cannot make a request of it: {error!r}"
            self._deliveries.reject(delivery, reason)
            return []
        if not requests:
            reason = f"the spider {self._spider.name} makes no request of it"
            self._deliveries.reject(delivery, reason)
        for request in requests:
            self._deliveries.took(delivery, request)
        return requests


def _check_scheduler(settings: BaseSettings) -> None:
    """Refuses a scheduler that passes a held request on to other processes."""
    name = settings["SCHEDULER"]
    # For Scrapy, every class with the same methods is a subclass.
    if Scheduler not in load_object(name).__mro__:
        raise ValueError(
            f"SCHEDULER is {name}. With SendDiscovered a spider holds each item that it reads, so"
            " that nothing is lost if it dies. Another queue would pass the request on to spiders"
            ' that do not hold it. Set SCHEDULER = "scrapy.core.scheduler.Scheduler", or use'
            " urlseen_scrapy.FifoQueue instead of SendDiscovered"
        )
    if settings.get("JOBDIR"):
        raise ValueError(
            f"JOBDIR is {settings['JOBDIR']}. With SendDiscovered a spider that closes requeues"
            " each request that it did not finish, and JOBDIR would keep the same request."
            " Remove JOBDIR"
        )


def _is_json(value: Any) -> bool:
    """Returns `True` if JSON keeps the value as it is: a tuple would become a list."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return value - value == 0
    return value is None or type(value) in (str, int, bool)
