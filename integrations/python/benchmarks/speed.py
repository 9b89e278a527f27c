"""Measures the Python package beside Scrapy and other filters. Prints a line of JSON for each case.

    speed.py LINKS [--rounds N] [--keys N]

LINKS is a file with one URL on each line, compressed by gzip. Each filter runs in a process of its own,
with N generated URLs: first each URL is new, then each is seen, then N other URLs give the error
rate. `scripts/bench-python` runs this program with all packages that it needs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BATCH = 10_000
ERROR_RATE = 1e-6
FINGERPRINTS = "fingerprints through Python"
FILTERS = "filters through Python"
CRAWL = "a crawl in one process"


def show(group: str, case: str, unit: str, values: list[float]) -> None:
    rounded = [value if isinstance(value, int) else float(f"{value:.5g}") for value in values]
    print(json.dumps({"group": group, "case": case, "unit": unit, "values": rounded}), flush=True)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fingerprints(links: list[str], rounds: int) -> None:
    """Measures fingerprints one by one and in batches. The cases of a round run in turn."""
    from scrapy import Request
    from scrapy.utils.request import RequestFingerprinter
    from w3lib.url import canonicalize_url

    import urlseen
    from urlseen.scrapy import Fingerprinter

    native = Fingerprinter()

    def each(compute: Callable[[Any], object], given: list[Any]) -> float:
        return seconds(lambda: [compute(one) for one in given])

    results: dict[str, list[float]] = {}
    for _ in range(rounds):
        requests, others = [[Request(link) for link in links] for _ in range(2)]
        own = RequestFingerprinter()
        for case, taken in {
            "urlseen, fingerprint(url)": each(urlseen.fingerprint, links),
            "urlseen, fingerprints(urls)": seconds(lambda: urlseen.fingerprints(links)),
            "urlseen, Fingerprinter.fingerprint(request)": each(native.fingerprint, requests),
            "Scrapy, RequestFingerprinter.fingerprint(request)": each(own.fingerprint, others),
            "urlseen, canonicalize(url)": each(urlseen.canonicalize, links),
            "w3lib, canonicalize_url(url)": each(canonicalize_url, links),
        }.items():
            results.setdefault(case, []).append(1e9 * taken / len(links))
    for case, nanoseconds in results.items():
        show(FINGERPRINTS, case, "ns", nanoseconds)


def urls(name: str, count: int) -> Iterator[list[str]]:
    """Makes different URLs in batches."""
    draw = random.Random(name)
    for first in range(0, count, BATCH):
        yield [
            f"https://example.com/{name}/{draw.getrandbits(40):x}/page-{number}.html"
            for number in range(first, min(first + BATCH, count))
        ]


class Tested:
    """Filter, with the calls that test and add one key and a batch."""

    def __init__(self, kind: str, keys: int) -> None:
        add: Callable[[str], bool]
        if kind in ("two-choice", "native", "exact"):
            import urlseen

            size: dict[str, Any] = {"capacity": keys, "error_rate": ERROR_RATE}
            if kind == "two-choice":
                size["grow_to"] = keys
            filter_ = urlseen.Filter(kind=kind, **({} if kind == "exact" else size))
            self.add = filter_.add
            self.add_many: Callable[[list[str]], list[bool]] | None = filter_.add_many
            self.contains = filter_.__contains__
            return
        made: Any
        if kind == "set":
            made = set()
        elif kind == "rbloom":
            import rbloom

            made = rbloom.Bloom(keys, ERROR_RATE)
        else:
            from pybloom_live import BloomFilter

            made = BloomFilter(keys, ERROR_RATE)
        insert = made.add

        def add(key: str) -> bool:
            if key in made:
                return False
            insert(key)
            return True

        def add_many(batch: list[str]) -> list[bool]:
            new = [key not in made for key in batch]
            made.update(batch)
            return new

        self.add = add
        # pybloom-live has no call for a batch.
        self.add_many = add_many if kind in ("set", "rbloom") else None
        self.contains = made.__contains__


def memory() -> int:
    """Returns the memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def one_filter(kind: str, way: str, keys: int) -> None:
    """Measures a filter, and prints the figures as JSON."""
    before = memory()
    tested = Tested(kind, keys)
    taken = []
    for is_new in (True, False):
        total, wrong = 0.0, 0
        for batch in urls("seen", keys):
            if way == "batches" and tested.add_many is not None:
                started = time.perf_counter()
                answers = tested.add_many(batch)
                total += time.perf_counter() - started
                wrong += sum(answer != is_new for answer in answers)
            else:
                started = time.perf_counter()
                for url in batch:
                    wrong += tested.add(url) != is_new
                total += time.perf_counter() - started
        assert is_new or wrong == 0, f"{kind} has lost a key"
        taken.append(1e9 * total / keys)
        if is_new:
            used = memory() - before
    false = sum(tested.contains(url) for batch in urls("other", keys) for url in batch)
    figures = {"new": taken[0], "seen": taken[1], "bytes": used / keys, "errors": false / keys}
    print(json.dumps(figures))


def filters(keys: int, rounds: int) -> None:
    """Measures all filters, each in a process of its own."""
    kinds = ("two-choice", "native", "exact", "set", "rbloom", "pybloom-live")
    results: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for kind in kinds:
            for way in ("one by one", "batches"):
                if kind == "pybloom-live" and way == "batches":
                    continue
                command = [sys.executable, __file__, "--filter", kind, way, "--keys", str(keys)]
                found = json.loads(subprocess.check_output(command))
                name = f"urlseen, {kind}" if kind in kinds[:3] else kind
                for age in ("new", "seen"):
                    results.setdefault((f"{name}, {way}, {age} URLs", "ns"), []).append(found[age])
                if way == "one by one":
                    results.setdefault((name, "bytes a URL"), []).append(found["bytes"])
                    results.setdefault((name, "errors"), []).append(found["errors"])
    for (case, unit), values in results.items():
        show(FILTERS, case, unit, values)


SPIDER = """
import resource, sys, time
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse

PAGES, LINKS = map(int, sys.argv[1:3])

class Site:
    '''Answers each request with a page of links, so that only the spider's process works.'''

    lazy = False

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    async def download_request(self, request):
        number = int(request.url.rpartition("-")[2] or 0)
        first = number * LINKS // 4 % (PAGES * 4)
        links = "".join(
            f'<a href="/a/page?b={link % 7}&id=page-{link % PAGES}">x</a>'
            for link in range(first, first + LINKS)
        )
        return HtmlResponse(request.url, body=links.encode(), request=request)

    async def close(self):
        pass

class Demo(scrapy.Spider):
    name = "demo"
    pages = 0

    async def start(self):
        yield scrapy.Request("http://site/a/page?b=0&id=page-0")

    def parse(self, response):
        self.pages += 1
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)

process = CrawlerProcess({
    "DOWNLOAD_HANDLERS": {"http": Site},
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "JOBDIR": sys.argv[3],
    **eval(sys.argv[4]),
})
crawler = process.create_crawler(Demo)
process.crawl(crawler)
started = time.perf_counter()
process.start()
wall = time.perf_counter() - started
used = resource.getrusage(resource.RUSAGE_SELF)
import json
print(json.dumps({
    "s": wall, "processor s": used.ru_utime + used.ru_stime, "MiB": used.ru_maxrss / 1024,
    "pages": crawler.spider.pages,
}))
"""


def crawls(pages: int, links: int, rounds: int) -> None:
    """Measures crawls of generated pages with Scrapy's own classes and with those of urlseen."""
    ours = {
        "REQUEST_FINGERPRINTER_CLASS": "urlseen.scrapy.Fingerprinter",
        "DUPEFILTER_CLASS": "urlseen.scrapy.LocalDupeFilter",
    }
    results: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for case, settings in (("Scrapy", {}), ("urlseen", ours)):
            with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as jobdir:
                program = [sys.executable, "-c", SPIDER, str(pages), str(links), jobdir]
                output = subprocess.check_output([*program, repr(settings)])
            for unit, value in json.loads(output).items():
                results.setdefault((case, unit), []).append(value)
    for (case, unit), values in results.items():
        show(CRAWL, case, unit, values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("links", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--filter", nargs=2, help="measure one filter, for this program itself")
    arguments = parser.parse_args()
    if arguments.filter:
        one_filter(*arguments.filter, arguments.keys)
        return
    links = gzip.decompress(arguments.links.read_bytes()).decode().split("\n")[:100_000]
    links = [link for link in links if link.startswith("http")]
    fingerprints(links, arguments.rounds)
    filters(arguments.keys, min(arguments.rounds, 2))
    crawls(arguments.pages, 200, arguments.rounds)
    if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss == 0:
        raise SystemExit("no filter was measured")


if __name__ == "__main__":
    main()
