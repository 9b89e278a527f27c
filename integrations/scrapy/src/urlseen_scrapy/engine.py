"""Parts of Scrapy's engine that this package relies on."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Protocol

import scrapy
from scrapy import Request
from scrapy.core import engine
from scrapy.core.scraper import Scraper

#: The methods, with their parameters.
RELIED_ON = (
    (engine, "_Slot.remove_request", ["self", "request"]),
    (engine, "ExecutionEngine._handle_downloader_output", ["self", "result", "request"]),
    (Scraper, "handle_spider_output_async", ["self", "result", "request", "response"]),
)


class Watcher(Protocol):
    """Receiver of the engine's progress with each request."""

    def led_to(self, request: Request, child: Request) -> None:
        """Notes that the page or the failure of `request` led to `child`."""

    def left(self, request: Request) -> None:
        """Notes that the engine is done with `request`, in any way."""


def check_engine() -> None:
    """Raises `RuntimeError` if this Scrapy lacks what `watch_engine` relies on."""
    for where, path, parameters in RELIED_ON:
        found: Any = where
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is None or list(inspect.signature(found).parameters) != parameters:
            raise RuntimeError(
                f"Scrapy {scrapy.__version__} has no {path}({', '.join(parameters)}), by which"
                " urlseen_scrapy knows when a request is finished. Without it requests would be"
                " lost: use a version of Scrapy that urlseen_scrapy is for"
            )


def watch_engine(running: Any, watcher: Watcher) -> None:
    """Tells `watcher` of each request of an `ExecutionEngine`, by the identity of the object.

    It never identifies a request by its meta, which spiders copy from one to the next.
    """
    slot = running._slot
    remove_request = slot.remove_request
    handle_downloader_output = running._handle_downloader_output
    handle_spider_output = running.scraper.handle_spider_output_async

    def remove(request: Request) -> None:
        # Before anything else: the slot may close the spider, and closing waits for this.
        watcher.left(request)
        remove_request(request)

    def handle_download(result: Any, request: Request) -> Any:
        # A retry, a redirect, or another request that a downloader middleware made of it.
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


def is_in_progress(running: Any, request: Request) -> bool:
    """Returns `True` if the engine works on this very object."""
    return request in running._slot.inprogress


def _watched(output: Iterable[Any], request: Request, watcher: Watcher) -> Iterator[Any]:
    for each in output:
        if isinstance(each, Request):
            watcher.led_to(request, each)
        yield each


async def _watched_async(
    output: AsyncIterator[Any], request: Request, watcher: Watcher
) -> AsyncIterator[Any]:
    async for each in output:
        if isinstance(each, Request):
            watcher.led_to(request, each)
        yield each
