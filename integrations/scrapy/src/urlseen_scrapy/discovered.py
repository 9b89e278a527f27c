"""Sending what a spider discovers to urlseen instead of the scheduler."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError
from scrapy import Request

from urlseen_scrapy.keys import source_key
from urlseen_scrapy.settings import spider_name

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

logger = logging.getLogger(__name__)

#: The most items in one push.
CHUNK = 100


class SendDiscovered:
    """A spider middleware for spiders that read their requests from urlseen's sink.

    It is for the RedisSpiders of scrapy-redis, whose `redis_key` is the sink, filled by urlseen
    with `sink.emit = "start-url"`: URL, method and meta. A request that is more than that (a body,
    headers, cookies, a callback other than `parse`, a meta that JSON cannot say) goes to the
    scheduler as before. Of the headers, `Referer` alone is not counted as more, and is lost.
    """

    def __init__(self, crawler: Crawler) -> None:
        # Who has no RedisSpiders need not have scrapy-redis.
        from scrapy_redis.connection import from_settings

        fingerprinter = crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
        self._crawler = crawler
        self._fingerprinter = fingerprinter
        self._server = from_settings(crawler.settings)
        self._source = source_key(crawler.settings, spider_name(crawler))
        self._has_said_why = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes one."""
        return cls(crawler)

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Sends requests, and lets all else through."""
        chunk = _Chunk(self)
        try:
            for each in result:
                if chunk.takes(each):
                    yield from chunk.send_if_full()
                else:
                    yield each
        except BaseException:
            chunk.rescue()
            raise
        yield from chunk.send()

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """The same, of an asynchronous callback."""
        chunk = _Chunk(self)
        try:
            async for each in result:
                if chunk.takes(each):
                    for unsent in chunk.send_if_full():
                        yield unsent
                else:
                    yield each
        except BaseException:
            chunk.rescue()
            raise
        for unsent in chunk.send():
            yield unsent

    def item(self, request: Request) -> bytes | None:
        """What urlseen is sent, unless it could not be made a request of again."""
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

    def push(self, items: list[bytes]) -> bool:
        """Whether Redis took them."""
        try:
            self._server.rpush(self._source, *items)
        except RedisError as error:
            logger.error("%d requests could not be sent to %s: %s", len(items), self._source, error)
            self._count("unsent", len(items))
            return False
        self._count("sent", len(items))
        return True

    def _why_not(self, request: Request) -> str | None:
        """What of the request would be lost on its way."""
        callback = request.callback
        if callback is not None and callback != getattr(self._crawler.spider, "parse", None):
            return "callback"
        for name in ("errback", "body", "cookies", "cb_kwargs", "flags"):
            if getattr(request, name):
                return name
        if any(name.lower() != b"referer" for name in request.headers):
            return "headers"
        return None if _is_json(request.meta) else "meta"

    def _count(self, what: str, count: int = 1) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"urlseen/{what}", count)


class _Chunk:
    """Requests of one response that are to be sent together."""

    def __init__(self, sender: SendDiscovered) -> None:
        self._sender = sender
        self._requests: list[Request] = []
        self._items: list[bytes] = []

    def takes(self, each: Any) -> bool:
        item = self._sender.item(each) if isinstance(each, Request) else None
        if item is None:
            return False
        self._requests.append(each)
        self._items.append(item)
        return True

    def send_if_full(self) -> list[Request]:
        return self.send() if len(self._items) >= CHUNK else []

    def send(self) -> list[Request]:
        """Sends them. Those that could not be sent are the scheduler's: rather twice than never."""
        requests, items = self._requests, self._items
        self._requests, self._items = [], []
        return requests if items and not self._sender.push(items) else []

    def rescue(self) -> None:
        """Sends what there was before the callback failed or was given up."""
        if self._items:
            self._sender.push(self._items)


def _is_json(value: Any) -> bool:
    """Whether JSON says it as it is: a tuple would come back as a list."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return value - value == 0
    return value is None or type(value) in (str, int, bool)
