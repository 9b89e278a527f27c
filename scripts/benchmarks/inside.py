"""Measures Python packages. Prints lines of JSON.

inside.py fingerprint|rules FILE      nanoseconds for a URL of the file
inside.py filter KIND WAY KEYS        nanoseconds for new and for seen URLs, and bytes for a URL
"""

import json
import random
import resource
import sys
import time
from pathlib import Path

import rbloom
import urlseen

BATCH = 10_000
ERROR_RATE = 1e-6


def measure(case, links, work):
    begun = time.perf_counter()
    for link in links:
        work(link)
    value = 1e9 * (time.perf_counter() - begun) / len(links)
    print(json.dumps({"case": case, "value": value}))


def fingerprint(links):
    from scrapy import Request
    from scrapy.utils.request import fingerprint
    from w3lib.url import canonicalize_url

    measure("urlseen in Python, fingerprint(url)", links, urlseen.fingerprint)
    measure("w3lib, canonicalize_url(url)", links, canonicalize_url)
    measure("Scrapy, fingerprint(Request(url))", links, lambda link: fingerprint(Request(link)))


def rules(links):
    from w3lib.url import url_query_cleaner

    tracking = ("utm_source", "utm_medium", "utm_campaign", "gclid", "fbclid")
    clean = lambda link: url_query_cleaner(link, tracking, remove=True, keep_fragments=True)
    measure("w3lib, url_query_cleaner with 5 parameters", links, clean)


def filter_of(kind, keys):
    """Returns a function that adds a URL, and one that adds a batch. Both tell which were new."""
    if kind.startswith("urlseen"):
        kind = kind.split()[-1]
        size = {} if kind == "exact" else {"capacity": keys, "error_rate": ERROR_RATE}
        if kind == "two-choice":
            size["grow_to"] = keys
        made = urlseen.Filter(kind=kind, **size)
        return made.add, made.add_many
    if kind == "rbloom":
        made = rbloom.Bloom(keys, ERROR_RATE)
    else:
        made = set()

    def add(url):
        if url in made:
            return False
        made.add(url)
        return True

    def add_many(batch):
        new = [url not in made for url in batch]
        made.update(batch)
        return new

    return add, add_many


def filter(kind, way, keys):
    before = memory()
    add, add_many = filter_of(kind, keys)
    answer = add_many if way == "batches" else lambda batch: [add(url) for url in batch]
    values = {}
    for unit, is_new in (("ns/new URL", True), ("ns/seen URL", False)):
        spent, wrong = 0, 0
        for batch in urls(keys):
            begun = time.perf_counter_ns()
            answers = answer(batch)
            spent += time.perf_counter_ns() - begun
            wrong += sum(it != is_new for it in answers)
        values[unit] = spent / keys
        if wrong > (keys * ERROR_RATE * 10 + 10 if is_new else 0):
            raise RuntimeError(f"{kind} gave {wrong} wrong answers about URLs with {is_new=}")
        if is_new:
            values["bytes/URL"] = (memory() - before) / keys
    print(json.dumps(values))


def urls(count):
    """Makes different URLs in batches."""
    draw = random.Random(1)
    for first in range(0, count, BATCH):
        yield [
            f"https://example.com/{draw.getrandbits(40):x}/page-{number}.html"
            for number in range(first, min(first + BATCH, count))
        ]


def memory():
    """Returns the memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    if sys.argv[1] == "filter":
        filter(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        work = {"fingerprint": fingerprint, "rules": rules}[sys.argv[1]]
        work(Path(sys.argv[2]).read_text().split())
