"""Scheduler of a crawl that many processes share: its requests pass through urlseen."""

from __future__ import annotations

import base64
import codecs
import json
import logging
import math
import pickle
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.request import request_from_dict

from urlseen.scrapy.deliveries import Deliveries
from urlseen.scrapy.fingerprinter import fingerprinter_of, returns
from urlseen.scrapy.pages import Pages
from urlseen.scrapy.settings import choice, refusal

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger(__name__)

#: Errors of `Request.to_dict` and of serializers, for example because of a lambda as callback.
UNSERIALIZABLE = (ValueError, TypeError, AttributeError, RecursionError, pickle.PicklingError)

#: Sizes in bytes of the fingerprints that urlseen recognizes at the start of an item.
DIGESTS = (16, 20, 32)


class Scheduler(BaseScheduler):
    """Scheduler that pushes requests to urlseen's source, and pops them from urlseen's sink.

        SCHEDULER = "urlseen.scrapy.Scheduler"
        URLSEEN_URL = "redis://127.0.0.1:6379"

    urlseen drops the seen requests, so `DUPEFILTER_CLASS` has no effect. Redis holds each popped
    request until the engine is done with it. If the spider stops before that, the request is
    requeued.

    An item in the source has the fingerprint and flags before a pickle of the fields of the request,
    and the sink has this pickle. With `URLSEEN_SERIALIZER = "json"` it is JSON instead.
    """

    def __init__(self, crawler: Crawler) -> None:
        serializer = choice(crawler.settings, "URLSEEN_SERIALIZER", ("pickle", "json"))
        self._dumps = pickle.dumps if serializer == "pickle" else _json
        self._crawler = crawler
        self._fingerprinter = fingerprinter_of(crawler)
        # Requests that cannot be serialized, and the fingerprints of all that there were.
        self._kept: deque[Request] = deque()
        self._kept_seen: set[bytes] = set()

    @classmethod
    @refusal()
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the scheduler for a crawler. Scrapy calls this method."""
        return cls(crawler)

    @refusal()
    def open(self, spider: Spider) -> None:
        """Connects to Redis, and compares the settings with the crawl record.

        Raises `ValueError` if a setting does not fit the daemon's config, and `RuntimeError` if the
        crawl record cannot be read.
        """
        self.spider = spider
        self.deliveries: Pages[Any] = Deliveries(self._crawler)

    def close(self, reason: str) -> None:
        """Sends the remaining links, and requeues the requests that the spider has not finished."""
        self.deliveries.close()

    def has_pending_requests(self) -> bool:
        """Returns `True` if requests wait anywhere, or are held by any spider."""
        return bool(self._kept) or self.deliveries.count() > 0

    def enqueue_request(self, request: Request) -> bool:
        """Sends a request to urlseen, with the fingerprint that this spider computes.

        The links of a page are sent together, at the latest when the page is finished. A request
        that cannot be serialized stays in this process. A redirect back to a URL of its own chain
        always passes. Returns `False` if this process knows that the request was seen.
        """
        fingerprint = self._fingerprinter.fingerprint(request)
        if not request.dont_filter and returns(request, self._fingerprinter):
            self._count("urlseen/returned")
            request.dont_filter = True
        if not request.dont_filter and self.deliveries.is_seen(request, fingerprint):
            self._count("dupefilter/filtered")
            return False
        try:
            item = self._item(request, fingerprint)
        except UNSERIALIZABLE as error:
            return self._keep(request, fingerprint, error)
        self.deliveries.collect(request, item, fingerprint)
        self._count("scheduler/enqueued")
        return True

    def next_request(self) -> Request | None:
        """Pops the next unseen request. Returns `None` if there is none now.

        A wait would block the reactor, so the method never waits. If there is no request, it makes
        the engine ask again soon.
        """
        request = self._kept.popleft() if self._kept else self._pop()
        if request is not None:
            self._count("scheduler/dequeued")
        return request

    def _pop(self) -> Request | None:
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

    def _item(self, request: Request, fingerprint: bytes) -> bytes:
        fields = request.to_dict(spider=self.spider)
        if len(fingerprint) not in DIGESTS:
            return self._dumps({**fields, "fingerprint": fingerprint.hex()})
        flags = "&dont_filter" if request.dont_filter else ""
        if request.priority:
            flags += f"&priority={request.priority:d}"
        if (ttl := request.meta.get("ttl")) is not None:
            # A tab would end the flags.
            flags += f"&ttl={ttl}".replace("\t", " ")
        return f"{fingerprint.hex()}\t{flags or '&'}\t".encode() + self._dumps(fields)

    def _keep(self, request: Request, fingerprint: bytes, error: Exception) -> bool:
        self._count("urlseen/unserializable")
        logger.warning(
            "%s stays in the memory of this process, because it cannot be serialized: %s",
            request,
            error,
        )
        if not request.dont_filter:
            if fingerprint in self._kept_seen:
                return False
            self._kept_seen.add(fingerprint)
        self._kept.append(request)
        self.deliveries.keep(request)
        return True

    def _request(self, item: bytes) -> Request:
        """Makes a request from an item. Other producers push URLs or JSON objects."""
        if item.startswith(b"\x80"):
            return request_from_dict(pickle.loads(item), spider=self.spider)
        text = item.lstrip().removeprefix(codecs.BOM_UTF8).lstrip()
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

    def _count(self, stat: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(stat)


def _json(fields: dict[str, Any]) -> bytes:
    """Writes the fields of a request as JSON. Names no class, because `_request` makes a `Request`."""
    headers = {
        name.decode(): [value.decode() for value in values]
        for name, values in fields["headers"].items()
    }
    body = base64.b64encode(fields["body"]).decode()
    others = {name: value for name, value in fields.items() if name not in ("body", "_class")}
    return json.dumps({**others, "headers": headers, "body_base64": body}).encode()


def _whole(priority: Any) -> int:
    """Rounds a priority. Returns 0 for a value that is no finite number.

    The daemon rejects such a value if the sink sorts by it, and else ignores it.
    """
    is_number = isinstance(priority, (int, float)) and math.isfinite(priority)
    return round(priority) if is_number else 0
