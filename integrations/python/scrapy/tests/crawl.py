"""Runs a spider in a process of its own.

The spiders are those of an ordinary project. They have no code for urlseen.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Request, Spider, crawler, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object
from scrapy_redis.spiders import RedisSpider

from urlseen.scrapy.record import Record


class Links(Spider):
    """Spider that follows every link, from `url`."""

    name = "demo"

    def __init__(self, url: str, **kwargs: str) -> None:
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response, **kwargs):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


class Expiring(Links):
    """Spider that follows every link. Its requests pass again after an hour."""

    def parse(self, response, **kwargs):
        for request in super().parse(response):
            if isinstance(request, Request):
                yield request.replace(meta={"ttl": "1h"})


class AsyncLinks(Links):
    """Spider that follows every link, with an asynchronous callback."""

    async def parse(self, response, **kwargs):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, priority=-response.meta.get("depth", 0))


class Odd(Links):
    """Spider that follows every link. Its requests end in all possible ways."""

    custom_settings: ClassVar = {"DOWNLOADER_MIDDLEWARES": {"crawl.IgnoreSome": 100}}

    def parse(self, response, **kwargs):
        for link in response.css("a::attr(href)").getall():
            # Many spiders copy the meta in this way.
            yield response.follow(link, meta=response.meta, errback=self.fail)
        if response.url.endswith("/"):
            yield Request(response.urljoin("/refused"), errback=self.fail)
            yield Request(response.urljoin("/ignored"), dont_filter=True)
            yield Request("http://127.0.0.1:1/", errback=self.fail)
        if "/p/1" in response.url:
            raise RuntimeError("after its links")

    def fail(self, failure):
        self.crawler.stats.inc_value("errbacks")
        yield Request(failure.request.url.replace("refused", "p/1?x=1&y=2"))


class IgnoreSome:
    """Downloader middleware that ignores some pages."""

    @classmethod
    def from_crawler(cls, crawler):
        middleware = cls()
        middleware.stats = crawler.stats
        return middleware

    def process_request(self, request, spider=None):
        if request.url.endswith("/ignored"):
            self.stats.inc_value("ignored")
            raise IgnoreRequest("for the test")


class Slow(Links):
    """Spider whose first callback computes for a long time."""

    def parse(self, response, **kwargs):
        yield {"url": response.url}
        time.sleep(4)
        self.crawler.stats.inc_value("slept")


class RedisLinks(RedisSpider):
    """RedisSpider that follows every link, from a start URL in Redis."""

    name = "demo"

    def parse(self, response, **kwargs):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


def patch(values: dict[str, Any]) -> None:
    """Gives names in modules other values."""
    for path, value in values.items():
        module, _, name = path.rpartition(".")
        setattr(import_module(module), name, value)


def kill_at(place: str, calls: int, is_after: bool) -> None:
    """Makes this process kill itself before or after this call of a method of a class."""
    path, _, name = place.rpartition(".")
    owner = load_object(path)
    method, numbers = getattr(owner, name), itertools.count(1)

    def counted(*args: Any, **kwargs: Any) -> Any:
        is_last = next(numbers) == calls
        if is_last and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*args, **kwargs)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, counted)


def copy_synced(folder: Path) -> None:
    """Copies the queue of a JOBDIR after each of its syncs: what a loss of power can leave."""
    commit_synced, unfinished = Record.commit_synced, folder / "unfinished.sqlite"

    def commit_and_copy(record: Record) -> None:
        commit_synced(record)
        with closing(sqlite3.connect(unfinished)) as copy:
            record.db.backup(copy)
        unfinished.replace(folder / "synced.sqlite")

    Record.commit_synced = commit_and_copy


def set_clock_forward(seconds: float) -> None:
    """Changes the time of day in this process."""
    clock = time.time
    time.time = lambda: clock() + seconds


def run_crawl(
    name: str,
    settings: dict[str, Any],
    stats: Path,
    log: Path,
    folder: str,
    arguments: dict[str, str],
) -> None:
    """Runs a spider in this process, which does nothing else. Writes its log and its stats."""
    with log.open("w") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    os.chdir(folder)
    _crawl(name, settings, stats, arguments)
    # Twisted logs an unhandled error when its object is gone.
    gc.collect()


def _crawl(name: str, settings: dict[str, Any], stats: Path, arguments: dict[str, str]) -> None:
    all_settings = {
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "%(levelname)s %(name)s: %(message)s",
        **settings,
    }
    set_clock_forward(all_settings.pop("TEST_CLOCK_S", 0))
    patch(all_settings.pop("TEST_PATCH", {}))
    if all_settings.pop("TEST_COPY_SYNCED", False):
        copy_synced(Path(all_settings["JOBDIR"]))
    if place := all_settings.pop("TEST_KILL", None):
        kill_at(*place)
    # Scrapy's default is 5 s: an idle spider looks for new requests after this time.
    heartbeat = all_settings.pop("TEST_HEARTBEAT_S", 0.1)
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = heartbeat
    has_reactor = all_settings.get("TWISTED_REACTOR_ENABLED", True)
    kind = "CrawlerProcess" if has_reactor else "AsyncCrawlerProcess"
    process = getattr(crawler, kind)(all_settings)
    running = process.create_crawler(globals()[name])

    def write() -> None:
        stats.write_text(json.dumps(running.stats.get_stats(), default=str))

    running.signals.connect(write, signals.engine_stopped)
    process.crawl(running, **arguments)
    process.start()


def load_all() -> None:
    """Imports what Scrapy imports at the start of a crawl."""
    for value in vars(default_settings).values():
        paths = [*value, *value.values()] if isinstance(value, dict) else [value]
        for path in paths:
            # In Scrapy 2.13, the handler of FTP installs a reactor.
            if isinstance(path, str) and path.startswith("scrapy.") and ".ftp." not in path:
                load_object(path)


load_all()
