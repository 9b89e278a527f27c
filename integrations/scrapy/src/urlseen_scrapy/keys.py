"""Names of the Redis keys of a crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from urlseen_scrapy.settings import key

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def source_key(settings: BaseSettings, spider: str) -> str:
    """Returns the key of the list for discovered requests: `source.key` in urlseen's config."""
    return key(settings, "URLSEEN_SOURCE_KEY", "%(spider)s:discovered", spider)


def sink_key(settings: BaseSettings, spider: str) -> str:
    """Returns the key that has the unseen requests: `sink.key` in urlseen's config."""
    return key(settings, "URLSEEN_SINK_KEY", "%(spider)s:unseen", spider)


@dataclass(frozen=True)
class CrawlKeys:
    """Redis keys that urlseen and the consumers of a crawl share, besides source and sink."""

    #: Hash with the crawl record or the partition table, which the daemon writes.
    crawl: str
    #: List of the items that the daemon, or a router, has taken from the source.
    processing: str
    #: Hash with the heartbeat of each consumer.
    consumers: str
    #: Hash with the requests that were requeued and are not finished yet.
    requeues: str
    _held: str

    @classmethod
    def of_source(cls, source: str) -> CrawlKeys:
        """Returns the keys of the crawl that reads `source`. All have the hash tag of `source`."""
        _, _, rest = source.partition("{")
        tag, brace, _ = rest.partition("}")
        tagged = source if tag and brace else f"{{{source}}}"
        prefix = f"urlseen:{tagged}"
        names = ("crawl", "processing", "consumers", "requeues", "held")
        return cls(*(f"{prefix}:{name}" for name in names))

    def held(self, consumer: str) -> str:
        """Returns the key of the hash with the requests that a consumer holds."""
        return f"{self._held}:{consumer}"
