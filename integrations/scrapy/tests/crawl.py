"""Runs a spider in a process of its own: crawl.py SPIDER SETTINGS.json STATS.json [ARGUMENT=VALUE…]

The spiders are those of an ordinary project. They have no code for urlseen.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import ClassVar

from scrapy import Request, Spider, crawler, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import IgnoreRequest
from scrapy_redis.spiders import RedisSpider


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


class Wide(Links):
    """Spider whose first page has more links than fit into one push. Most links are repeated."""

    def parse(self, response, **kwargs):
        links = response.css("a::attr(href)").getall()
        for n in range(1 if "/p/" in response.url else 100):
            for link in links:
                yield response.follow(f"{link}#{n}")


class Unfiltered(Links):
    """Spider that yields a further request with `dont_filter` from each page."""

    def parse(self, response, **kwargs):
        yield from super().parse(response)
        path = response.url.partition("?")[0].replace("/p/", "/more/")
        yield Request(path, self.stay, dont_filter=True)

    def stay(self, response):
        pass


class Slow(Links):
    """Spider whose first callback computes for a long time."""

    def parse(self, response, **kwargs):
        yield {"url": response.url}
        time.sleep(4)
        self.crawler.stats.inc_value("slept")


class Again(Links):
    """Spider that fetches its first page again and again. Its links have the meta of their page."""

    async def start(self):
        while True:
            yield Request(self.start_urls[0], dont_filter=True)
            await asyncio.sleep(0.25)

    def parse(self, response, **kwargs):
        found = {"Found": response.headers["Time"]}
        for link in response.css("a"):
            meta = json.loads(link.attrib["data-meta"])
            yield response.follow(link, headers=found, meta=meta)


class RedisLinks(RedisSpider):
    """RedisSpider that follows every link, from a start URL in Redis."""

    name = "demo"

    def parse(self, response, **kwargs):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
        if response.url.endswith(":/"):
            yield Request(response.urljoin("/moved"), self.parse_other)

    def parse_other(self, response):
        yield {"url": response.url}


class AsyncRedisLinks(RedisLinks):
    """RedisSpider that follows every link, with an asynchronous callback."""

    async def parse(self, response, **kwargs):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


def set_clock_forward(seconds: float) -> None:
    """Changes the time of day in this process."""
    clock = time.time
    time.time = lambda: clock() + seconds


def main() -> None:
    name, settings, stats, *arguments = sys.argv[1:]
    all_settings = {
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "%(levelname)s %(name)s: %(message)s",
        **json.loads(Path(settings).read_text()),
    }
    set_clock_forward(all_settings.pop("TEST_CLOCK_S", 0))
    heartbeat = all_settings.pop("TEST_HEARTBEAT_S", 5)
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = heartbeat
    has_reactor = all_settings.get("TWISTED_REACTOR_ENABLED", True)
    kind = "CrawlerProcess" if has_reactor else "AsyncCrawlerProcess"
    process = getattr(crawler, kind)(all_settings)
    running = process.create_crawler(globals()[name])

    def write() -> None:
        Path(stats).write_text(json.dumps(running.stats.get_stats(), default=str))

    running.signals.connect(write, signals.engine_stopped)
    process.crawl(running, **dict(argument.split("=", 1) for argument in arguments))
    process.start()


if __name__ == "__main__":
    main()
