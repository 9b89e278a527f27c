"""Keys in Redis that a crawl of urlseen uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from urlseen_scrapy.settings import key

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def source_key(settings: BaseSettings, spider: str) -> str:
    """Returns the list for discovered requests: `source.key` in urlseen's config."""
    return key(settings, "URLSEEN_SOURCE_KEY", "%(spider)s:discovered", spider)


def sink_key(settings: BaseSettings, spider: str) -> str:
    """Returns the key that unseen requests come from: `sink.key` in urlseen's config."""
    return key(settings, "URLSEEN_SINK_KEY", "%(spider)s:unseen", spider)


@dataclass(frozen=True)
class CrawlKeys:
    """Keys that urlseen and the consumers of a crawl share, beside source and sink."""

    #: Hash: the crawl record, which the daemon writes.
    crawl: str
    #: Hash: each consumer and its heartbeat.
    consumers: str
    #: Hash: requests that were requeued and not finished since.
    requeues: str
    #: List: rejects whose items are too large, each with its item after it.
    oversize: str
    _held: str

    @classmethod
    def of_source(cls, source: str) -> CrawlKeys:
        """Returns the keys of the crawl that reads `source`. They share its hash slot."""
        _, _, rest = source.partition("{")
        tag, brace, _ = rest.partition("}")
        tagged = source if tag and brace else f"{{{source}}}"
        prefix = f"urlseen:{tagged}"
        names = ("crawl", "consumers", "requeues", "oversize", "held")
        return cls(*(f"{prefix}:{name}" for name in names))

    def held(self, consumer: str) -> str:
        """Returns the hash of the requests that a consumer holds."""
        return f"{self._held}:{consumer}"
