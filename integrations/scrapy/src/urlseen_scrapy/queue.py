"""Queues for the scheduler of scrapy-redis, which lead through urlseen."""

from __future__ import annotations

import base64
import codecs
import json
import logging
import pickle
from typing import TYPE_CHECKING, Any, Protocol, cast

from scrapy import Request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from urlseen_scrapy.deliveries import Deliveries
from urlseen_scrapy.keys import sink_key
from urlseen_scrapy.record import Fit

if TYPE_CHECKING:
    from redis import Redis
    from scrapy import Spider

logger = logging.getLogger(__name__)


class Serializer(Protocol):
    """Interface of `SCHEDULER_SERIALIZER`."""

    def dumps(self, obj: dict[str, Any], /) -> bytes | str:
        """Returns the queued form of a request."""

    def loads(self, data: bytes, /) -> dict[str, Any]:
        """Returns the request of a queued form."""


class Pickle:
    """The default serializer of scrapy-redis."""

    def dumps(self, obj: dict[str, Any], /) -> bytes:
        """Writes a pickle, as `scrapy_redis.picklecompat` does."""
        return pickle.dumps(obj, protocol=-1)

    def loads(self, data: bytes, /) -> dict[str, Any]:
        """Reads a pickle, as `scrapy_redis.picklecompat` does."""
        return cast("dict[str, Any]", pickle.loads(data))


def _unmarked(item: bytes) -> bytes:
    """Removes the white space and the byte order mark that may stand before JSON."""
    return item.lstrip().removeprefix(codecs.BOM_UTF8).lstrip()


class _Queue:
    """Pushes to urlseen's source and pops from its sink."""

    #: The type of `sink.key` in Redis.
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
        self._check_types()

    def push(self, request: Request) -> None:
        """Sends a request to urlseen, with the fingerprint that this spider computes for it.

        It is sent with the other links of its page, when the page is finished at the latest.
        """
        fields = request.to_dict(spider=self.spider)
        fields["fingerprint"] = self._fingerprinter.fingerprint(request).hex()
        data = self.serializer.dumps(fields)
        item = data.encode() if isinstance(data, str) else data
        if not item.startswith((b"\x80", b"{")):
            raise ValueError(
                f"SCHEDULER_SERIALIZER makes an item of {request} that begins with {item[:8]!r};"
                " urlseen reads pickles of protocol 2 and later, and JSON objects"
            )
        self.deliveries.collect(request, item)

    def pop(self, timeout: int = 0) -> Request | None:
        """Pops the next unseen request, if there is one by now.

        It is held until the engine is done with it, and requeued if this spider stops before.
        This method never waits, because the reactor would. It makes the engine ask again soon.
        """
        while (delivery := self.deliveries.pop()) is not None:
            try:
                request = self._request(delivery.item)
            except Exception as error:
                logger.exception("An item of urlseen is no request: %r", delivery.item[:1000])
                reason = f"the spider {self.spider.name} cannot make a request of it: {error!r}"
                self.deliveries.reject(delivery, reason)
                continue
            self.deliveries.took(delivery, request)
            return request
        return None

    def __len__(self) -> int:
        """Counts requests in source, urlseen and sink, or held by any spider, at one moment."""
        return self.deliveries.count()

    def clear(self) -> None:
        """Refuses: urlseen has seen the waiting requests, so they would never be fetched."""
        logger.info(
            "%d requests stay in %s and %s, whatever SCHEDULER_PERSIST and"
            " SCHEDULER_FLUSH_ON_START say: urlseen remembers them, so they would never be fetched"
            " if they were dropped here. To begin anew, stop the daemon, delete these keys, and"
            " give the command: urlseen storage reset",
            len(self),
            self.source,
            self.key,
        )

    def _request(self, item: bytes) -> Request:
        """Reads the item. Others may have pushed it to the source, as a URL or a JSON object."""
        if item.startswith(b"\x80") or not isinstance(self.serializer, Pickle):
            return request_from_dict(self.serializer.loads(item), spider=self.spider)
        text = _unmarked(item)
        if not text.startswith(b"{"):
            return Request(item.decode())
        fields = json.loads(text)
        # JSON never names classes to be imported.
        fields.pop("_class", None)
        if "body_base64" in fields:
            fields["body"] = base64.b64decode(fields["body_base64"])
        return request_from_dict(fields, spider=self.spider)

    def _check_filter(self) -> None:
        """Refuses a dupefilter that would make requests be lost."""
        name = self.spider.settings["DUPEFILTER_CLASS"]
        if load_object(name).request_seen is not BaseDupeFilter.request_seen:
            raise ValueError(
                f"DUPEFILTER_CLASS is {name}, and urlseen judges after this queue. A request that"
                " both judge counts as seen when it gets to urlseen, and is never fetched. Set"
                ' DUPEFILTER_CLASS = "urlseen_scrapy.NoDupeFilter"'
            )

    def _check_types(self) -> None:
        """Refuses keys of Redis that hold another type."""
        for key, kind, setting in (
            (self.source, "list", "URLSEEN_SOURCE_KEY"),
            (self.key, self.kind, "URLSEEN_SINK_KEY"),
        ):
            found = self.server.type(key)
            found = found.decode() if isinstance(found, bytes) else str(found)
            if found not in ("none", kind):
                raise ValueError(
                    f"{setting}: Redis holds a {found} in {key}, and"
                    f" {type(self).__name__} needs a {kind}. PriorityQueue goes with"
                    ' sink.kind = "zset" in urlseen\'s config, FifoQueue with "list"'
                )


class PriorityQueue(_Queue):
    """Queue that pops the highest priority first: for `sink.kind = "zset"`."""

    kind = "zset"


class FifoQueue(_Queue):
    """Queue that pops in the order of discovery: for `sink.kind = "list"`."""

    kind = "list"
