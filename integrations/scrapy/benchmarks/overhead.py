"""Measures `request_seen` of the dupefilters of this package and of scrapy-redis, in turns.

    python benchmarks/overhead.py [--urlseen URL] [--redis URL] [--requests N] [--rounds N]

In each round, both dupefilters get the same N new requests, and then the same N requests again. The
dupefilters take turns, in changing order. The time of a call includes that of the fingerprint. The
benchmark uses its own keys, and deletes them at the end if the server permits that.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import uuid
from collections.abc import Callable

import redis
from scrapy import Request, Spider
from scrapy.utils.reactor import install_reactor
from scrapy.utils.test import get_crawler
from scrapy_redis.dupefilter import RFPDupeFilter

from urlseen_scrapy import DupeFilter

Times = dict[tuple[str, str], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urlseen", default="redis://127.0.0.1:6390")
    parser.add_argument("--key", default="", help="one of serve.keys; default: a new key")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    run = uuid.uuid4().hex
    key = options.key or f"overhead:{run}"
    crawler = get_crawler(
        Spider, {"URLSEEN_URL": options.urlseen, "URLSEEN_KEY": key.replace("%", "%%")}
    )
    crawler.spider = Spider("overhead")
    ours = DupeFilter.from_crawler(crawler)
    ours.open()
    server = redis.Redis.from_url(options.redis)
    theirs = RFPDupeFilter(server, f"overhead:{run}:theirs")
    asked: list[tuple[str, Callable[[Request], bool]]] = [
        ("urlseen_scrapy.DupeFilter", ours.request_seen),
        ("scrapy_redis RFPDupeFilter", theirs.request_seen),
    ]

    times: Times = {(name, kind): [] for kind in ("new", "seen") for name, _ in asked}
    gc.disable()
    try:
        for round_ in range(options.rounds + 1):
            urls = [
                f"https://example.com/{run}/{round_}/{n}?b=2&a=1" for n in range(options.requests)
            ]
            for kind in ("new", "seen"):
                for name, request_seen in asked if round_ % 2 else reversed(asked):
                    taken = ask(request_seen, urls, expected=kind == "seen")
                    # The times of the first round do not count.
                    if round_:
                        times[name, kind] += taken
                gc.collect()
    finally:
        theirs.clear()
        server.close()
        forget(options.urlseen, key)
        ours.close("finished")
    report(times)


def ask(request_seen: Callable[[Request], bool], urls: list[str], expected: bool) -> list[float]:
    # A fingerprinter caches the fingerprint of a request object, so each request is a new object.
    requests = [Request(url) for url in urls]
    times = []
    clock = time.perf_counter
    for request in requests:
        begun = clock()
        seen = request_seen(request)
        times.append(clock() - begun)
        assert seen is expected, request
    return times


def forget(url: str, key: str) -> None:
    """Deletes the key. Redis permits this, and urlseen refuses it."""
    with redis.Redis.from_url(url, protocol=2) as client:
        try:
            client.delete(key)
        except redis.ResponseError:
            pass


def report(times: Times) -> None:
    print(f"{'µs a request':<28}{'':<6}{'median':>8}{'p99':>8}")
    for (name, kind), taken in times.items():
        median = statistics.median(taken) * 1e6
        p99 = statistics.quantiles(taken, n=100)[98] * 1e6
        print(f"{name:<28}{kind:<6}{median:>8.1f}{p99:>8.1f}")


if __name__ == "__main__":
    main()
