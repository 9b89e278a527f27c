"""Scrapy's engine: its end, and hooks into private parts that show when a request is finished."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import Request
from scrapy.core import engine
from scrapy.core.scraper import Scraper
from scrapy.utils.defer import deferred_from_coro

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from urlseen.scrapy.pages import Pages

#: Methods of Scrapy that `watch_engine` replaces, with their parameters.
RELIED_ON = (
    (engine, "_Slot.remove_request", ["self", "request"]),
    (engine, "ExecutionEngine._handle_downloader_output", ["self", "result", "request"]),
    (Scraper, "handle_spider_output_async", ["self", "result", "request", "response"]),
)


def check_engine() -> None:
    """Raises `RuntimeError` if this version of Scrapy lacks a method that `watch_engine` uses."""
    for where, path, parameters in RELIED_ON:
        found: Any = where
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is None or list(inspect.signature(found).parameters) != parameters:
            raise RuntimeError(
                f"Scrapy {scrapy.__version__} has no {path}({', '.join(parameters)}). Without it,"
                " urlseen.scrapy does not know when a request is finished, and would lose requests."
                " Use a version of Scrapy that urlseen.scrapy supports"
            )


def watch_engine(running: Any, watcher: Pages[Any]) -> None:
    """Tells `watcher` about each request of an `ExecutionEngine`, by `led_to` and `left`.

    The watcher gets the request object itself, and identifies a request by the identity of this
    object. Its meta would not identify it, because spiders copy meta from one request to the next.
    """
    slot = running._slot
    remove_request = slot.remove_request
    handle_downloader_output = running._handle_downloader_output
    handle_spider_output = running.scraper.handle_spider_output_async

    def remove(request: Request) -> None:
        # The watcher comes first, because `remove_request` may close the spider.
        watcher.left(request)
        remove_request(request)

    def handle_download(result: Any, request: Request) -> Any:
        # A downloader middleware returned a request, for example a retry or a redirect.
        if isinstance(result, Request):
            watcher.led_to(request, result)
        return handle_downloader_output(result, request)

    async def handle_output(result: Any, request: Request, response: Any) -> None:
        is_async = isinstance(result, AsyncIterator)
        watched = _watched_async if is_async else _watched
        await handle_spider_output(watched(result, request, watcher), request, response)

    slot.remove_request = remove
    running._handle_downloader_output = handle_download
    running.scraper.handle_spider_output_async = handle_output


def _watched(output: Iterable[Any], request: Request, watcher: Pages[Any]) -> Iterator[Any]:
    for each in output:
        if isinstance(each, Request):
            watcher.led_to(request, each)
        yield each


async def _watched_async(
    output: AsyncIterator[Any], request: Request, watcher: Pages[Any]
) -> AsyncIterator[Any]:
    async for each in output:
        if isinstance(each, Request):
            watcher.led_to(request, each)
        yield each


def close_spider(crawler: Crawler, reason: str) -> None:
    """Closes the spider of a crawler. `reason` becomes the `finish_reason` of its stats.

    Raises `RuntimeError` if the crawl has not started yet.
    """
    running = crawler.engine
    if running is None or crawler.spider is None:
        raise RuntimeError(f"the crawl ends before it has started: {reason}")
    if hasattr(running, "close_spider_async"):
        deferred_from_coro(running.close_spider_async(reason=reason))
    else:
        # Scrapy 2.13 lacks the asynchronous method.
        running.close_spider(crawler.spider, reason)
