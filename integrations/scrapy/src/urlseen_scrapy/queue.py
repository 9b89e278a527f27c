"""Classes for the setting `SCHEDULER_QUEUE_CLASS`: queues that send requests through urlseen."""

from __future__ import annotations

import base64
import codecs
import json
import logging
import math
import pickle
from typing import TYPE_CHECKING, Any, Protocol, cast

from scrapy import Request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from urlseen_scrapy.deliveries import Deliveries
from urlseen_scrapy.record import Fit
from urlseen_scrapy.settings import sink_key

if TYPE_CHECKING:
    from redis import Redis
    from scrapy import Spider

logger = logging.getLogger(__name__)


class Serializer(Protocol):
    """Interface of a module or object that `SCHEDULER_SERIALIZER` names."""

    def dumps(self, obj: dict[str, Any], /) -> bytes | str:
        """Returns the item for Redis that has the fields of a request."""

    def loads(self, data: bytes, /) -> dict[str, Any]:
        """Returns the fields of a request, read from an item."""


class Pickle:
    """Default serializer, the same as that of scrapy-redis."""

    def dumps(self, obj: dict[str, Any], /) -> bytes:
        """Writes a pickle, as `scrapy_redis.picklecompat` does."""
        return pickle.dumps(obj, protocol=-1)

    def loads(self, data: bytes, /) -> dict[str, Any]:
        """Reads a pickle, as `scrapy_redis.picklecompat` does."""
        return cast("dict[str, Any]", pickle.loads(data))


def _unmarked(item: bytes) -> bytes:
    """Removes white space and a byte order mark before JSON."""
    return item.lstrip().removeprefix(codecs.BOM_UTF8).lstrip()


def _whole(priority: Any) -> int:
    """Rounds a priority. Returns 0 for a value that is no finite number.

    The daemon rejects such a value if the sink sorts by it, and else ignores it.
    """
    is_number = isinstance(priority, (int, float)) and math.isfinite(priority)
    return round(priority) if is_number else 0


class _Queue:
    """Queue that pushes to urlseen's source and pops from urlseen's sink.

    The constructor raises `ValueError` if a setting does not fit this queue or the daemon's config,
    and `RuntimeError` if the crawl record cannot be read.
    """

    #: Type of the sink in Redis: the required value of `sink.kind`.
    kind: str

    def __init__(
        self,
        server: Redis,
        spider: Spider,
        key: str,
        serializer: Serializer | None = None,
    ) -> None:
        crawler = spider.crawler
        fingerprinter = crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
        self.server = server
        self.spider = spider
        self.serializer: Serializer = Pickle() if serializer is None else serializer
        self.key = sink_key(spider.settings, spider.name)
        self._fingerprinter = fingerprinter
        self._check_filter()
        name = type(self).__name__
        fit = Fit(name, "item", self.kind, self.key, "URLSEEN_SINK_KEY")
        self.deliveries = Deliveries(crawler, server, fit)
        self.source = self.deliveries.source

    def push(self, request: Request) -> None:
        """Pushes a request to urlseen's source, with the fingerprint that this spider computes.

        The links of a page are sent together, at the latest when the page is finished. Raises
        `ValueError` if the serializer makes an item that urlseen cannot read.
        """
        fields = request.to_dict(spider=self.spider)
        fingerprint = self._fingerprinter.fingerprint(request)
        fields["fingerprint"] = fingerprint.hex()
        data = self.serializer.dumps(fields)
        item = data.encode() if isinstance(data, str) else data
        if not item.startswith((b"\x80", b"{")):
            raise ValueError(
                f"SCHEDULER_SERIALIZER makes an item of {request} that begins with {item[:8]!r};"
                " urlseen reads pickles of protocol 2 and later, and JSON objects"
            )
        self.deliveries.collect(request, item, fingerprint)

    def pop(self, timeout: int = 0) -> Request | None:
        """Pops the next unseen request. Returns `None` if there is none now.

        Redis holds the request until the engine is done with it. If this spider stops before that,
        the request is requeued. A wait would block the reactor, so the method never waits, and
        ignores `timeout`. If there is no request, it makes the engine ask again soon.
        """
        while (delivery := self.deliveries.pop()) is not None:
            try:
                request = self._request(delivery.item)
            except Exception as error:
                logger.exception(
                    "No request can be made from an item of urlseen: %r", delivery.item[:1000]
                )
                name = self.spider.name
                reason = f"the spider {name} cannot make a request from this item: {error!r}"
                self.deliveries.reject(delivery, reason)
                continue
            self.deliveries.took(delivery, request)
            return request
        return None

    def __len__(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests."""
        return self.deliveries.count()

    def clear(self) -> None:
        """Logs that the waiting requests stay. scrapy-redis calls this method.

        urlseen counts these requests as seen. If they were deleted, their pages would never be
        fetched.
        """
        logger.info(
            "%d requests stay in %s and %s; SCHEDULER_PERSIST and SCHEDULER_FLUSH_ON_START have no"
            " effect. urlseen counts these requests as seen, so they would never be fetched if they"
            " were deleted. To begin anew, stop the daemon, delete these keys, and run: urlseen"
            " storage reset",
            len(self),
            self.source,
            self.key,
        )

    def _request(self, item: bytes) -> Request:
        """Makes a request from an item. Other producers push URLs or JSON objects."""
        if item.startswith(b"\x80") or not isinstance(self.serializer, Pickle):
            return request_from_dict(self.serializer.loads(item), spider=self.spider)
        text = _unmarked(item)
        if not text.startswith(b"{"):
            return Request(item.decode())
        fields = json.loads(text)
        # `null` is an absent field, as in the daemon. `_class` could name any class, so it is never
        # imported.
        fields = {name: value for name, value in fields.items() if value is not None}
        fields.pop("_class", None)
        fields["priority"] = _whole(fields.get("priority", 0))
        if "body_base64" in fields:
            fields["body"] = base64.b64decode(fields["body_base64"])
        return request_from_dict(fields, spider=self.spider)

    def _check_filter(self) -> None:
        """Raises `ValueError` for a dupefilter that drops requests, because pages would be lost."""
        name = self.spider.settings["DUPEFILTER_CLASS"]
        if load_object(name).request_seen is not BaseDupeFilter.request_seen:
            raise ValueError(
                f"DUPEFILTER_CLASS is {name}, but urlseen tests requests after this queue. A"
                " request that this filter has passed and recorded could count as seen in urlseen,"
                " and would never be fetched. Set DUPEFILTER_CLASS ="
                ' "urlseen_scrapy.NoDupeFilter"'
            )


class PriorityQueue(_Queue):
    """Queue that pops the request with the highest priority first.

    The daemon needs `sink.kind = "zset"`:

        SCHEDULER = "scrapy_redis.scheduler.Scheduler"
        SCHEDULER_QUEUE_CLASS = "urlseen_scrapy.PriorityQueue"
        DUPEFILTER_CLASS = "urlseen_scrapy.NoDupeFilter"
    """

    kind = "zset"


class FifoQueue(_Queue):
    """Queue that pops requests in the order of their discovery.

    The daemon needs `sink.kind = "list"`:

        SCHEDULER = "scrapy_redis.scheduler.Scheduler"
        SCHEDULER_QUEUE_CLASS = "urlseen_scrapy.FifoQueue"
        DUPEFILTER_CLASS = "urlseen_scrapy.NoDupeFilter"
    """

    kind = "list"
