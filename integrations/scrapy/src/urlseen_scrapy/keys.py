"""The keys in Redis that urlseen takes from and pushes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urlseen_scrapy.settings import key

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def source_key(settings: BaseSettings, spider: str) -> str:
    """The list that discovered requests are pushed to: `source.key` in urlseen's config."""
    return key(settings, "URLSEEN_SOURCE_KEY", "%(spider)s:discovered", spider)


def sink_key(settings: BaseSettings, spider: str) -> str:
    """Where unseen requests come from: `sink.key` in urlseen's config."""
    return key(settings, "URLSEEN_SINK_KEY", "%(spider)s:unseen", spider)


def taken_key(source: str) -> str:
    """The list of what urlseen has claimed of `source` and not committed yet."""
    _, _, rest = source.partition("{")
    tag, brace, _ = rest.partition("}")
    return f"urlseen:{source}:taken" if tag and brace else f"urlseen:{{{source}}}:taken"
