"""Function that ends a crawl."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger("urlseen.scrapy")


def close_spider(crawler: Crawler, reason: str) -> None:
    """Closes the spider of a crawler. `reason` becomes the `finish_reason` of its stats.

    Raises `RuntimeError` if the crawl has not started yet.
    """
    engine = crawler.engine
    if engine is None or crawler.spider is None:
        raise RuntimeError(f"the crawl ends before it has started: {reason}")
    if hasattr(engine, "close_spider_async"):
        deferred_from_coro(engine.close_spider_async(reason=reason))
    else:
        # Scrapy 2.13 lacks the asynchronous method.
        engine.close_spider(crawler.spider, reason)
