from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import default_settings
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler

from pages import Site
from servers import Asked, Daemon, Proxy, RedisServer

# Scrapy 2.13 cannot make a crawler without a reactor.
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")

HERE = Path(__file__).parent
REACTORS = {
    "asyncio": {"TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor"},
    "twisted": {"TWISTED_REACTOR": None},
}
# Scrapy can run without a reactor since 2.15.
WAYS_TO_RUN = dict(REACTORS)
if hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
    WAYS_TO_RUN["none"] = {"TWISTED_REACTOR_ENABLED": False}


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(redis_server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def run_urlseen(tmp_path: Path, redis_server: RedisServer) -> Iterator[Callable[..., Daemon]]:
    daemons: list[Daemon] = []

    def run(settings: dict[str, Any]) -> Daemon:
        daemons.append(Daemon.of_settings(tmp_path, redis_server, settings))
        return daemons[-1]

    yield run
    for daemon in daemons:
        daemon.close()


@pytest.fixture(params=REACTORS)
def reactor(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns the setting of a project that selects a reactor."""
    return REACTORS[request.param]


@pytest.fixture(params=WAYS_TO_RUN)
def any_reactor(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns the setting of a project that selects a reactor, or that turns the reactor off."""
    return WAYS_TO_RUN[request.param]


def make_crawler(settings: dict[str, Any], spider_name: str = "demo") -> Crawler:
    """Makes a crawler with a spider. The crawler does not run."""
    crawler = get_crawler(Spider, settings)
    crawler.spider = Spider.from_crawler(crawler, name=spider_name)
    crawler.engine = FakeEngine()
    return crawler


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine in its own event loop, not in the loop of the reactor."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


class FakeEngine:
    """Substitutes for the parts of Scrapy's engine that `urlseen_scrapy.engine` uses."""

    class _Slot:
        class _Everything:
            def __contains__(self, _: object) -> bool:
                return True

        inprogress = _Everything()

        def remove_request(self, request: Request) -> None:
            pass

    class _Scraper:
        async def handle_spider_output_async(self, result, request, response) -> None:
            self.output = [each async for each in as_async_generator(result)]

    def __init__(self) -> None:
        self._slot = self._Slot()
        self.scraper = self._Scraper()
        self.spider = None

    def _handle_downloader_output(self, result, request) -> None:
        pass

    def page(self, request: Request, *output: Any) -> None:
        """Processes a page whose callback yields `output`."""
        run(self.scraper.handle_spider_output_async(iter(output), request, None))

    def finish(self, request: Request) -> None:
        """Tells the watcher that the engine is done with `request`."""
        self._slot.remove_request(request)


@dataclass
class Crawl:
    """Crawl that runs in its own process."""

    process: subprocess.Popen[str]
    stats_file: Path
    log_file: Path

    def wait(self) -> dict[str, Any]:
        """Waits until the crawl has ended, and returns its stats."""
        self.process.wait(timeout=100)
        assert self.stats_file.exists(), self.log
        return json.loads(self.stats_file.read_text())

    @property
    def log(self) -> str:
        return self.log_file.read_text()


@pytest.fixture
def start_crawl(tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    crawls: list[Crawl] = []

    def start(spider: str, settings: dict[str, Any], **arguments: str) -> Crawl:
        number = len(crawls)
        stats, log = tmp_path / f"stats-{number}.json", tmp_path / f"crawl-{number}.log"
        written = tmp_path / f"settings-{number}.json"
        written.write_text(json.dumps(settings))
        words = [f"{name}={value}" for name, value in arguments.items()]
        with log.open("w") as out:
            command = [sys.executable, HERE / "crawl.py", spider]
            process = subprocess.Popen([*command, written, stats, *words], stderr=out, stdout=out)
        crawls.append(Crawl(process, stats, log))
        return crawls[-1]

    yield start
    for crawl in crawls:
        if crawl.process.poll() is None:
            crawl.process.kill()
            crawl.process.wait()


@pytest.fixture
def seen_server(tmp_path: Path) -> Iterator[Asked]:
    """Starts a urlseen that answers spiders."""
    folder = tmp_path / "asked"
    folder.mkdir()
    server = Asked(folder)
    yield server
    server.close()
