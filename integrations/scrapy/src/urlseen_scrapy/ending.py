"""Ending the crawl of a spider."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger("urlseen_scrapy")


def close_spider(crawler: Crawler, reason: str) -> None:
    """Closes the crawler's spider with a reason."""
    engine = crawler.engine
    if engine is None or crawler.spider is None:
        raise RuntimeError(f"the crawl ends before it began: {reason}")
    if hasattr(engine, "close_spider_async"):
        deferred_from_coro(engine.close_spider_async(reason=reason))
    else:
        # Scrapy 2.13.
        engine.close_spider(crawler.spider, reason)
