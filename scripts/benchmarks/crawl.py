"""Sections `crawl` and `jobdir`: crawls of a generated site, with each way to find repeated links."""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from . import tools
from .server import cpu_seconds, free_port, redis_server, running

SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}
ADDON = {"ADDONS": {"urlseen.scrapy.Addon": 500}}
PASS_THROUGH = {**ADDON, "URLSEEN_URL": None}
ASK = {**ADDON, "SCHEDULER": "scrapy_redis.scheduler.Scheduler", "URLSEEN_ASK_URL": None}
WAYS = {"scrapy-redis": SCRAPY_REDIS, "urlseen, pass through": PASS_THROUGH, "urlseen, ask": ASK}
# Processes of plain Scrapy share no crawl.
ALONE = {**WAYS, "Scrapy": {}}
SPIDERS = (1, 3)
JOBDIR = {"JOBDIR": None}
SQLITE = {
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleLifoSQLiteQueue",
    "SCHEDULER_START_DISK_QUEUE": "scrapy.squeues.PickleFifoSQLiteQueue",
}
# Crawls in one process.
JOBS = {
    "Scrapy with a JOBDIR": JOBDIR,
    "Scrapy with a JOBDIR and SQLite queues": {**JOBDIR, **SQLITE},
    "Scrapy in memory": {},
    "urlseen with a JOBDIR": {**JOBDIR, **ADDON},
    "urlseen in memory": ADDON,
}
SITE = Path(__file__).with_name("generated.py")
SPIDER = Path(__file__).with_name("spider.py")
# Maximum number of seconds for a crawl.
PATIENCE = 300


def run(sizes, figures):
    with site(figures, sizes.pages, sizes.links) as url:
        for spiders in SPIDERS:
            group = f"{spiders} spider{'s' * (spiders > 1)}"
            for way, settings in tools.in_turn(ALONE if spiders == 1 else WAYS, sizes.rounds):
                for unit, value in crawl(settings, spiders, url, sizes.pages).items():
                    figures.add(group, way, unit, value)


def run_jobs(sizes, figures):
    with site(figures, sizes.job_pages, sizes.job_links) as url:
        for way, settings in tools.in_turn(JOBS, sizes.few_rounds):
            for unit, value in job(settings, url, sizes.job_pages).items():
                figures.add("one process", way, unit, value)


@contextmanager
def site(figures, pages, links):
    """Serves a site. Yields the URL of its first page."""
    figures.facts |= {"pages": pages, "links on a page": links}
    port = free_port()
    with running([sys.executable, SITE, port, pages, links], lambda: listens(port)):
        yield f"http://127.0.0.1:{port}/p/0?id=0&from=site"


def job(settings, url, pages):
    """Crawls the site once in one process. Returns a value a unit."""
    with tools.folder() as folder:
        if "JOBDIR" in settings:
            settings = {**settings, "JOBDIR": str(folder / "job")}
        begun = time.monotonic()
        spider = start_spider(folder, settings, url)
        found = int(spider.stdout.read().split()[0])
        _, spider.returncode, used = os.wait4(spider.pid, 0)
        wall = time.monotonic() - begun
    if found != pages:
        raise RuntimeError(f"{found} of {pages} pages were fetched: {settings}")
    values = (used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)
    return dict(zip(("CPU seconds", "wall seconds", "peak MiB"), values))


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


def crawl(settings, spiders, url, pages):
    """Crawls the site once, with an empty Redis and an empty filter. Returns a value a unit."""
    with ExitStack() as stack:
        folder = stack.enter_context(tools.folder())
        port, listen, daemons = free_port(), free_port(), []
        server = stack.enter_context(redis_server("--port", port))
        redis = f"redis://127.0.0.1:{port}/0"
        urls = {"URLSEEN_URL": redis, "URLSEEN_ASK_URL": f"redis://127.0.0.1:{listen}"}
        settings = {name: urls.get(name, value) for name, value in settings.items()}
        settings["REDIS_URL"] = redis
        urlseen = [tools.URLSEEN, "run", f"--set=redis.url={redis}"]
        urlseen += [f"--set=storage.dir={folder}/storage"]
        if "URLSEEN_URL" in settings:
            has_lease = lambda: server.client.keys("urlseen:*lease")
            daemons.append(running([*urlseen, "--set=sink.kind=zset"], has_lease))
        elif "URLSEEN_ASK_URL" in settings:
            urlseen += ["--set=source.kind=none", f"--set=serve.listen=127.0.0.1:{listen}"]
            daemons.append(running(urlseen, lambda: listens(listen)))
        daemons = [stack.enter_context(daemon) for daemon in daemons]
        asked = lambda: server.client.info("stats")["total_commands_processed"]
        programs = [server.process.pid, *(daemon.pid for daemon in daemons)]
        commands, used = asked(), [cpu_seconds(pid) for pid in programs]
        spent, begun = children_seconds(), time.monotonic()
        found, links = run_spiders(folder, spiders, settings, url)
        wall, spent = time.monotonic() - begun, children_seconds() - spent
        used = [cpu_seconds(pid) - before for pid, before in zip(programs, used)]
        commands = asked() - commands
    if found != pages:
        raise RuntimeError(f"{found} of {pages} pages were fetched: {settings}")
    units = ("wall seconds", "spider CPU s", "Redis CPU s", "Redis commands/link", "urlseen CPU s")
    # Without a daemon, the last unit is left out.
    return dict(zip(units, (wall, spent, used[0], commands / links, *used[1:])))


def run_spiders(folder, count, settings, url):
    """Runs spiders that share a crawl. Returns their numbers of pages and of links."""
    spiders = [start_spider(folder, settings, url) for _ in range(count)]
    try:
        printed = [spider.communicate(timeout=PATIENCE)[0] for spider in spiders]
    finally:
        for spider in spiders:
            spider.kill()
    return [sum(numbers) for numbers in zip(*(map(int, words.split()) for words in printed))]


def start_spider(folder, settings, url):
    """Starts a spider with settings."""
    written = folder / "settings.json"
    written.write_text(json.dumps(settings))
    options = {"env": {**os.environ, "PYTHONPATH": native()}, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-B", SPIDER, written, url], **options)


@cache
def native():
    """Builds the Python package, and returns its folder."""
    build = [tools.ROOT / "scripts/checks/native", "--release"]
    return subprocess.check_output(build, text=True).strip()


def children_seconds():
    """Returns the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
