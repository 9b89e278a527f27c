"""Measurement of whole crawls of a generated site: each way of deduplication in turn."""

import json
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from crawling.processes import PYTHON_PATH, Process

from .folders import ROOT
from .measured import Measured, say
from .process import cpu_seconds
from .report import crawl as report
from .server import Server, wait_until

CRAWLING = ROOT / "scripts/crawling"
#: The newest Scrapy that scripts/checks/scrapy installs, and the Python of its environment.
SCRAPY = re.search(r"^newest=(\S+)", (ROOT / "scripts/checks/scrapy").read_text(), re.M)[1]
PYTHON = ROOT / ".venv-scrapy" / SCRAPY / "bin/python"
PACKAGES = ("Scrapy", "scrapy-redis", "redis", "hiredis", "Twisted")
#: Maximum number of seconds for a crawl.
PATIENCE = 600

SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}
PASS_THROUGH = {
    **SCRAPY_REDIS,
    "DUPEFILTER_CLASS": "urlseen_scrapy.NoDupeFilter",
    "SCHEDULER_QUEUE_CLASS": "urlseen_scrapy.PriorityQueue",
}
ASK = {**SCRAPY_REDIS, "DUPEFILTER_CLASS": "urlseen_scrapy.DupeFilter"}
#: The project settings of each way.
WAYS = {report.BASE: SCRAPY_REDIS, report.PASS_THROUGH: PASS_THROUGH, report.ASK: ASK}


@dataclass
class Crawls:
    """Crawls of one size, with their parameters."""

    program: Path
    pages: int
    # Number of links on each page.
    links: int
    # Number of processes that share a crawl.
    spiders: int
    rounds: int

    def run(self):
        """Measures all rounds and returns their lines. A round crawls once in each way."""
        if not PYTHON.exists():
            raise RuntimeError(f"run scripts/checks/scrapy once: it sets up Scrapy {SCRAPY}")
        measured = Measured()
        with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as folder:
            with Site(folder, self.pages, self.links) as site:
                for number in range(self.rounds):
                    ways = list(WAYS)
                    first = number % len(ways)
                    for way in ways[first:] + ways[:first]:
                        self.crawl(way, site, measured)
                    say(f"{self.group}: round {number + 1} of {self.rounds}")
        return measured.lines()

    @property
    def group(self):
        return report.group(self.spiders)

    def crawl(self, way, site, measured):
        """Crawls the site once, with an empty Redis and an empty filter."""
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="urlseen-bench-"))
            port = free_port()
            server = stack.enter_context(Server(arguments=("--port", str(port))))
            url = f"redis://127.0.0.1:{port}/0"
            settings, daemon = {**WAYS[way], "REDIS_URL": url}, None
            if way == report.PASS_THROUGH:
                daemon = stack.enter_context(self.daemon(folder, url, "sink.kind=zset"))
                wait_until(lambda: is_leased(daemon, server), "urlseen takes no lease")
            elif way == report.ASK:
                listen = free_port()
                options = ("source.kind=none", f"serve.listen=127.0.0.1:{listen}")
                daemon = stack.enter_context(self.daemon(folder, url, *options))
                wait_until(lambda: answers(daemon, listen), "urlseen does not answer")
                settings["URLSEEN_URL"] = f"redis://127.0.0.1:{listen}"
            for unit, value in self.cost(folder, site, server, daemon, settings).items():
                measured.add(self.group, way, unit, value)

    def daemon(self, folder, url, *options):
        words = [f"--set={option}" for option in (f"redis.url={url}", *options)]
        return Process("urlseen", folder, [self.program, "run", *words])

    def cost(self, folder, site, server, daemon, settings):
        """Runs the spiders. Returns the figure of the crawl for each unit."""
        commands = lambda: server.client.info("stats")["total_commands_processed"]
        written = Path(folder) / "settings.json"
        written.write_text(json.dumps(settings))
        programs = [server.process.pid, *([daemon.process.pid] if daemon else [])]
        asked, used = commands(), [cpu_seconds(pid) for pid in programs]
        spent, begun = children_seconds(), time.monotonic()
        stats = run_spiders(folder, self.spiders, written, site.url)
        wall, spent = time.monotonic() - begun, children_seconds() - spent
        used = [cpu_seconds(pid) - before for pid, before in zip(programs, used)]
        asked = commands() - asked
        pages, links = (sum(it[name] for it in stats) for name in ("pages", "links"))
        if pages != self.pages:
            raise RuntimeError(f"{pages} of {self.pages} pages were fetched: {settings}")
        units = (report.COMMANDS, report.REDIS, report.SPIDER, report.WALL, report.URLSEEN)
        # Without a daemon, `used` has one value and the last unit is left out.
        return dict(zip(units, (asked / links, used[0], spent, wall, *used[1:])))


class Site(Process):
    """Process that serves the generated site."""

    def __init__(self, folder, pages, links):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/p/0?id=0&from=site"
        command = [sys.executable, CRAWLING / "generated.py", port, pages, links]
        super().__init__("site", folder, command)
        wait_until(lambda: answers(self, port), "the site does not answer")


def run_spiders(folder, count, settings, url):
    """Starts `count` spiders and waits for all of them. Returns the stats of each spider."""
    environment = {"PYTHONPATH": PYTHON_PATH, "PYTHONDONTWRITEBYTECODE": "1"}
    stats = [Path(folder) / f"stats-{number}.json" for number in range(count)]
    with ExitStack() as stack:
        spiders = []
        for number, path in enumerate(stats):
            command = [PYTHON, CRAWLING / "trickle.py", settings, url, path]
            spider = Process(f"spider-{number}", folder, command, environment)
            spiders.append(stack.enter_context(spider))
        for spider in spiders:
            if spider.process.wait(PATIENCE) != 0:
                spider.check()
    return [json.loads(path.read_text()) for path in stats]


def versions():
    """Returns the versions of the Python packages that the spiders use."""
    script = f"from importlib.metadata import version\nfor it in {PACKAGES}: print(it, version(it))"
    said = subprocess.run([PYTHON, "-c", script], check=True, capture_output=True, text=True)
    return ", ".join(said.stdout.splitlines())


def children_seconds():
    """Returns the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_leased(daemon, server):
    daemon.check()
    return server.client.keys("urlseen:*lease")


def answers(process, port):
    process.check()
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
