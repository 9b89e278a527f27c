from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.settings import default_settings
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler

from clusters import ClusterServers
from crawl import run_crawl
from pages import Site
from servers import END_S, Asked, Daemon, Proxy, RedisServer

# Scrapy 2.13 cannot make a crawler without a reactor.
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")

# Each crawl is a fork of a process that has imported all of Scrapy, which takes half of a crawl's
# processor time.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["crawl"])

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


@pytest.fixture(scope="session")
def cluster_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServers]:
    servers = ClusterServers(tmp_path_factory.mktemp("cluster"))
    yield servers
    servers.close()


@pytest.fixture
def cluster(cluster_servers: ClusterServers) -> Iterator[ClusterServers]:
    """Returns an empty cluster of three primaries, which several tests use."""
    cluster_servers.wait()
    yield cluster_servers
    cluster_servers.clear()


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


def quick(names: Iterable[str], *few: str) -> list[Any]:
    """Marks all parameters of a test but a few as thorough."""
    return [pytest.param(it, marks=() if it in few else pytest.mark.thorough) for it in names]


@pytest.fixture(params=quick(REACTORS, "asyncio"))
def reactor(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Returns the setting of a project that selects a reactor."""
    return REACTORS[request.param]


@pytest.fixture(params=quick(WAYS_TO_RUN, "asyncio"))
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
    """Substitutes for the parts of Scrapy's engine that `urlseen.scrapy.engine` uses."""

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

    class _Downloader:
        def __init__(self) -> None:
            self.slots: dict[str, Any] = {}

        def get_slot_key(self, request: Request) -> str:
            return urlsplit(request.url).hostname

    def __init__(self) -> None:
        self._slot = self._Slot()
        self.scraper = self._Scraper()
        self.downloader = self._Downloader()
        self.spider = None
        self.settle: Callable[[], object] = lambda: None

    def _handle_downloader_output(self, result, request) -> None:
        pass

    def page(self, request: Request, *output: Any) -> None:
        """Processes a page whose callback yields `output`."""
        run(self.scraper.handle_spider_output_async(iter(output), request, None))

    def finish(self, request: Request) -> None:
        """Tells the watcher that the engine is done with `request`, and waits for its answer."""
        self._slot.remove_request(request)
        self.settle()


@dataclass
class Crawl:
    """Crawl that runs in its own process."""

    process: ForkServerProcess
    stats_file: Path
    log_file: Path

    def wait(self) -> dict[str, Any]:
        """Waits until the crawl has ended, and returns its stats."""
        self.end()
        assert self.stats_file.exists(), self.log
        return json.loads(self.stats_file.read_text())

    def end(self) -> None:
        """Waits until the process has ended."""
        self.process.join(END_S)
        assert self.process.exitcode is not None, self.log

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    @property
    def log(self) -> str:
        return self.log_file.read_text()


def starter(folder: Path, crawls: list[Crawl]) -> Callable[..., Crawl]:
    """Returns a function that starts a crawl, and adds it to `crawls`."""

    def start(spider: str, settings: dict[str, Any], **arguments: str) -> Crawl:
        number = len(crawls)
        stats, log = folder / f"stats-{number}.json", folder / f"crawl-{number}.log"
        log.touch()
        crawl = (spider, settings, stats, log, os.getcwd(), arguments)
        process = FORKS.Process(target=run_crawl, args=crawl, daemon=True)
        process.start()
        crawls.append(Crawl(process, stats, log))
        return crawls[-1]

    return start


@pytest.fixture
def start_crawl(tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    crawls: list[Crawl] = []
    yield starter(tmp_path, crawls)
    for crawl in crawls:
        crawl.process.kill()
        crawl.process.join()


@pytest.fixture
def seen_server(tmp_path: Path) -> Iterator[Asked]:
    """Starts a urlseen that answers spiders."""
    folder = tmp_path / "asked"
    folder.mkdir()
    server = Asked(folder)
    yield server
    server.close()
