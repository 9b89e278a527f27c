"""Class for the setting `SPIDER_MIDDLEWARES`: it sends discovered requests to urlseen."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.utils.misc import load_object

from urlseen_scrapy.deliveries import Deliveries
from urlseen_scrapy.record import Fit
from urlseen_scrapy.settings import sink_key, spider_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider
    from typing_extensions import Self

    from urlseen_scrapy.delivery import Delivery

logger = logging.getLogger(__name__)


class SendDiscovered:
    """Spider middleware that sends discovered requests to urlseen instead of the scheduler.

    It is for the RedisSpiders of scrapy-redis, which read their requests from `redis_key`. That key
    is urlseen's sink, and urlseen fills the sink with `sink.emit = "start-url"`:

        SPIDER_MIDDLEWARES = {"urlseen_scrapy.SendDiscovered": 50}
        REDIS_START_URLS_KEY = "%(name)s:unseen"

    An item in this form has URL, method and meta. A request with any other part goes to the
    scheduler, as it does without this middleware. Other parts are a body, cookies, headers other
    than `Referer`, a callback other than `parse`, an errback, flags, `cb_kwargs`, and a meta that
    JSON would change. The header `Referer` is lost.

    The spider holds each item until all requests that the item led to are sent or fetched.

    The constructor raises `ValueError` if a setting does not fit this middleware or the daemon's
    config, and `RuntimeError` if Redis does not answer.
    """

    def __init__(self, crawler: Crawler) -> None:
        # A project without RedisSpiders needs no scrapy-redis.
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
                f" {sink}. Set both to urlseen's sink.key"
            )
        fit = Fit(name, "start-url", "list", sink, setting)
        self.deliveries = Deliveries(
            crawler, from_settings(crawler.settings), fit, keeps_children=True
        )
        if redis_key is not None:
            _Reading(spider, self.deliveries).begin()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the middleware for a crawler. Scrapy calls this method."""
        return cls(crawler)

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Sends the requests among the results to urlseen, and yields all other results."""
        for each in result:
            if not self._takes(each, response):
                yield each

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Sends the requests of an asynchronous callback to urlseen, and yields other results."""
        async for each in result:
            if not self._takes(each, response):
                yield each

    def item(self, request: Request) -> bytes | None:
        """Returns the JSON item of a request, or `None` if the item would lose a part of it.

        The method counts the requests for which it returns `None`, and logs the first one.
        """
        why_not = self._why_not(request)
        if why_not is not None:
            self._count("scheduled")
            if not self._has_said_why:
                self._has_said_why = True
                logger.info(
                    "%s goes to the scheduler, because urlseen could not pass on its %s;"
                    " no more such requests will be logged",
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
        fingerprint = self._fingerprinter.fingerprint(each)
        self.deliveries.collect(each, item, fingerprint, page=response.request)
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
    """Makes a RedisSpider pop held requests instead of plain items of its `redis_key`."""

    def __init__(self, spider: Any, deliveries: Deliveries) -> None:
        self._spider = spider
        self._deliveries = deliveries
        self._make: Any = spider.make_request_from_data

    def begin(self) -> None:
        """Replaces the methods of the spider that pop, count and make requests."""
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
            logger.exception(
                "No request can be made from an item of urlseen: %r", delivery.item[:1000]
            )
            name = self._spider.name
            reason = f"the spider {name} cannot make a request from this item: {error!r}"
            self._deliveries.reject(delivery, reason)
            return []
        if not requests:
            reason = f"the spider {self._spider.name} makes no request from this item"
            self._deliveries.reject(delivery, reason)
        for request in requests:
            self._deliveries.took(delivery, request)
        return requests


def _check_scheduler(settings: BaseSettings) -> None:
    """Raises `ValueError` for a scheduler that passes held requests to other processes."""
    name = settings["SCHEDULER"]
    # `issubclass` is true for every class that has the methods of a scheduler.
    if Scheduler not in load_object(name).__mro__:
        raise ValueError(
            f"SCHEDULER is {name}. With SendDiscovered, a spider holds each item that it reads,"
            " so that no request is lost if the spider dies. This scheduler could pass the request"
            ' to spiders that do not hold it. Set SCHEDULER = "scrapy.core.scheduler.Scheduler",'
            " or use urlseen_scrapy.FifoQueue instead of SendDiscovered"
        )
    if settings.get("JOBDIR"):
        raise ValueError(
            f"JOBDIR is {settings['JOBDIR']}. With SendDiscovered, a closing spider requeues each"
            " unfinished request, and JOBDIR would keep the same request. Remove JOBDIR"
        )


def _is_json(value: Any) -> bool:
    """Returns `True` if JSON does not change the value. It would change a tuple to a list."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return value - value == 0
    return value is None or type(value) in (str, int, bool)
