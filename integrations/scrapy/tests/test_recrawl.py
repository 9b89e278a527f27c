"""Crawls of a site that changes, with a filter whose fingerprints expire."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest

from changing import EACH, KINDS, ChangingSite, Fetch
from queues import moved
from servers import until

CONFIG = """
[filter]
kind = "two-choice"
capacity = 1000
expire_after = "5s"

[[expire]]
host = '^localhost$'
expire_after = "2s"

[[expire]]
path = '^/archive/'
expire_after = "never"
"""
EXPIRE_AFTER_S = 5.0
#: A generation may begin late by this time. A URL that is let through meanwhile has the earlier
#: generation, and passes again earlier.
LATE_S = 0.2
#: Minimum number of seconds after which a page of a kind passes again.
WINDOWS_S = {
    "/page/": EXPIRE_AFTER_S,
    "/news/": 2.0,
    "/archive/": float("inf"),
    "/archive/ticker/": 1.0,
    "/shop/": EXPIRE_AFTER_S,
}


@pytest.fixture
def changing_site() -> Iterator[ChangingSite]:
    site = ChangingSite()
    yield site
    site.close()


@pytest.mark.parametrize(
    ("queue", "settings", "sink"),
    [
        ("FifoQueue", {"SCHEDULER_SERIALIZER": "jsoncompat"}, "list"),
        ("PriorityQueue", {}, "zset"),
    ],
)
def test_each_page_is_fetched_once_in_each_window(
    redis_server, run_urlseen, changing_site, start_crawl, tmp_path, queue, settings, sink
):
    (tmp_path / "config.toml").write_text(CONFIG)
    run_urlseen({"sink.kind": sink})
    settings = {**moved(redis_server.url, queue), **settings}
    crawl = start_crawl("Again", settings, url=changing_site.url)

    def fetches(kind: str) -> list[list[Fetch]]:
        assert crawl.process.poll() is None, crawl.log
        return [list(changing_site.fetches[f"{kind}{n}"]) for n in range(EACH)]

    for kind in KINDS:
        until(lambda kind=kind: all(fetches(kind)), f"the pages {kind}")
    for count in (2, 3):
        until(lambda count=count: min(map(len, fetches("/page/"))) >= count, f"fetch {count}")
    # A rule, a ttl and a lastmod can let a page pass earlier than other pages.
    for kind in ("/news/", "/archive/ticker/", "/shop/"):
        until(lambda kind=kind: all(map(is_early, fetches(kind))), f"early fetches of {kind}")
    crawl.process.send_signal(signal.SIGINT)
    assert crawl.wait()["finish_reason"] == "shutdown", crawl.log

    assert not too_early(changing_site)
    assert redis_server.client.llen("demo:rejected") == 0
    assert "ERROR" not in crawl.log


def is_early(fetches: list[Fetch]) -> bool:
    """Returns true if a page passed again before `filter.expire_after`."""
    return any(
        after.at - before.found < EXPIRE_AFTER_S - LATE_S for before, after in pairwise(fetches)
    )


def too_early(site: ChangingSite) -> list[str]:
    """Returns the fetches that came too early.

    urlseen let a request through after its link was found, and before its page was fetched. So the
    time from this link to the next fetch is at least the window of the page. It may be shorter once
    after each change of a page of the shop: if the page changed between the two links.
    """
    problems = []
    for path, fetches in site.fetches.items():
        kind = path.rpartition("/")[0] + "/"
        for before, after in pairwise(fetches):
            changed = site.last_change(path, after.found) > before.found
            too_soon = after.at - before.found < WINDOWS_S[kind] - LATE_S
            if too_soon and not (kind == "/shop/" and changed):
                problems.append(f"{path}: {before}, {after}")
    return problems
