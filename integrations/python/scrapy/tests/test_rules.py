"""Crawls in one process: requests that expire, and rules."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kills import CONCURRENT, SETTINGS, crawl_with_kills
from pages import PAGES, Site
from queues import to
from test_job import Local
from urlseen.scrapy import forget


@pytest.fixture(params=[False, True])
def folder(request, tmp_path) -> Path | None:
    """Returns a JOBDIR, or `None` for a crawl in memory."""
    return tmp_path / "job" if request.param else None


@pytest.fixture
def clock(monkeypatch):
    """Returns a function that sets the time of day forward."""
    now = [time.time()]
    monkeypatch.setattr("time.time", lambda: now[0])
    monkeypatch.setattr("urlseen.scrapy.record.DUE", 1)
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def next_run(queue: Local, **settings) -> Local:
    """Returns the crawl that continues after a kill, or the same crawl if it is in memory."""
    if queue._is_in_memory:
        return queue
    queue.deliveries._record.commit()
    jobdir = Path(queue._crawler.settings["JOBDIR"])
    copy = jobdir.with_name(jobdir.name + "x")
    shutil.copytree(jobdir, copy)
    return Local(copy, **settings)


def test_a_request_passes_again_after_its_ttl(folder, clock):
    queue = Local(folder)
    assert queue.enqueue_request(to("1", meta={"ttl": 60}))
    assert queue.enqueue_request(to("2", meta={"ttl": "1h 1m"}))
    assert queue.enqueue_request(to("always"))
    clock(59)
    # Only the `ttl` of the request that passes counts.
    assert not queue.enqueue_request(to("1", meta={"ttl": 1}))
    queue = next_run(queue)
    clock(-60)
    assert not queue.enqueue_request(to("1")), "a clock that is set back only delays"
    clock(62)
    assert queue.enqueue_request(to("1", meta={"ttl": 60})) and not queue.enqueue_request(to("1"))
    assert not queue.enqueue_request(to("2"))
    queue = next_run(queue)
    clock(3600)
    queue = next_run(queue)
    assert queue.enqueue_request(to("1")) and queue.enqueue_request(to("2"))
    clock(1e9)
    assert not any(map(queue.enqueue_request, [to("1"), to("2"), to("always")]))


def test_a_forgotten_request_has_no_ttl_any_more(folder, clock):
    queue = Local(folder)
    assert queue.enqueue_request(to("1", meta={"ttl": 60}))
    assert forget(to("1"), queue._crawler)
    assert queue.enqueue_request(to("1"))
    clock(61)
    assert not queue.enqueue_request(to("1")) and not next_run(queue).enqueue_request(to("1"))


@pytest.mark.parametrize("ttl", ["soon", -1, [1]])
def test_a_wrong_ttl_rejects_a_request(folder, ttl, caplog):
    queue = Local(folder)
    assert not queue.enqueue_request(to("1", meta={"ttl": ttl}))
    assert "`ttl` is neither a number of seconds nor a time" in caplog.text
    assert queue._crawler.stats.get_value("urlseen/rejected") == 1
    assert queue.enqueue_request(to("1"))


RULES = {
    "drop": [{"extension": "^zip$"}, {"scheme": "^ftp$"}],
    "pass": [{"name": "lists", "path": "^/list"}],
    "limit": [
        {"by": "host", "max": 9},
        {"by": "pattern", "max": 2, "path": "^/day/"},
        {"by": "parameter", "parameter": "page", "max": 1},
    ],
}
URLS = [
    *["https://a.x/list", "https://a.x/list/1.zip", "https://a.x/list", "https://a.x/1.ZIP?x"],
    *["ftp://a.x/", *(f"https://a.x/day/{n}" for n in (1, 2, 1, 3, 2))],
    *(f"https://a.x/{n}?page={n % 2}" for n in range(6)),
    *(f"https://a.x/{n}" for n in range(6)),
    *["https://b.x/day/1", "https://b.x/day/9#x", "https://b.x/list?page=3"],
]


@pytest.mark.parametrize("is_killed", [False, True])
def test_rules_act_as_with_the_daemon(folder, tmp_path, redis_server, is_killed):
    text = "".join(
        f"[[{kind}]]\n" + "".join(f"{key} = {value!r}\n" for key, value in rule.items())
        for kind, rules in RULES.items()
        for rule in rules
    )
    (tmp_path / "config.toml").write_text(text)
    redis_server.client.rpush("demo:discovered", *URLS)
    words = ["run", "--drain", f"--set=redis.url={redis_server.url}"]
    subprocess.run([sys.executable, "-m", "urlseen", *words], check=True, cwd=tmp_path)
    expected = [it.decode() for it in redis_server.client.lrange("demo:unseen", 0, -1)]
    settings = {f"URLSEEN_{kind.upper()}": rules for kind, rules in RULES.items()}
    settings["URLSEEN_ORDER"] = "fifo"
    queue = Local(folder, **settings)
    passed = []
    for number, url in enumerate(URLS):
        queue.enqueue_request(to("").replace(url=url))
        if is_killed and number % 5 == 0:
            queue = next_run(queue, **settings)
        passed += [it.url for it in iter(queue.next_request, None)]
    # The requests in work come again after a kill.
    assert list(dict.fromkeys(passed)) == list(dict.fromkeys(expected))
    assert (folder and is_killed) or passed == expected
    last = {"dont_filter": True}
    assert not queue.enqueue_request(to("", **last).replace(url="https://a.x/9.zip"))
    assert queue.enqueue_request(to("", **last).replace(url="https://a.x/9")), "not counted"
    stats = queue._crawler.stats.get_stats()
    if not is_killed:
        assert (stats["urlseen/dropped"], stats["urlseen/over_limit"]) == (4, 6)


def test_a_rule_sets_the_time_after_which_requests_pass_again(folder, clock):
    rules = [{"path": "/a", "expire_after": "1m"}, {"path": "/b", "expire_after": "never"}]
    queue = Local(folder, URLSEEN_EXPIRE=rules)
    ttls = {"a": None, "a2": 3600, "a3": 1, "b": None, "c": None}
    requests = [to(name, meta={"ttl": ttl}) for name, ttl in ttls.items()]
    assert all(map(queue.enqueue_request, requests))
    for seconds, expected in ((2, ["a3"]), (59, ["a", "a2", "a3"])):
        clock(seconds)
        found = [it.url.rpartition("/")[2] for it in requests if queue.enqueue_request(it)]
        assert found == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"URLSEEN_DROP": [{"hosts": "x"}]}, "there is no key drop.hosts; did you mean drop.host?"),
        ({"URLSEEN_PASS": [{"host": "("}]}, r"\[\[pass\]\] has host = "),
        ({"URLSEEN_LIMIT": [{"by": "host"}]}, r"\[\[limit\]\] has no max"),
        (
            {
                "URLSEEN_LIMIT": [{"by": "host", "max": 1}],
                "URLSEEN_EXPIRE": [{"host": "x", "expire_after": "1d"}],
            },
            r"\[\[limit\]\] cannot be used with \[\[expire\]\]",
        ),
    ],
)
def test_a_wrong_rule_is_refused(folder, settings, message):
    with pytest.raises(ValueError, match=message):
        Local(folder, **settings)


def test_a_limit_counts_exactly_in_crawls_that_are_killed(tmp_path, start_crawl):
    site = Site(60)
    rules = {
        "URLSEEN_LIMIT": [{"by": "pattern", "path": "^/p/", "max": 30}],
        "URLSEEN_DROP": [{"path": "7$"}],
    }
    try:
        crawl_with_kills(site, start_crawl, random.Random(3), tmp_path / "job", 0, 5, **rules)
        hits = site.page_hits()
        assert len(hits) == 30 and not any(it.endswith("7") for it in hits)
    finally:
        site.close()


def test_requests_pass_again_in_crawls_that_are_killed(tmp_path, start_crawl, site):
    settings = {**SETTINGS, "JOBDIR": str(tmp_path / "job")}
    killed = {"TEST_KILL": ("crawl.Links.parse", PAGES // 2, False)}

    def crawl(**more) -> int:
        """Returns the number of fetched pages."""
        before = site.page_hits().total()
        crawl = start_crawl("Expiring", settings | more, url=site.url)
        crawl.end()
        assert crawl.process.exitcode == (-9 if "TEST_KILL" in more else 0), crawl.log
        return site.page_hits().total() - before

    first = crawl(**killed) + crawl()
    assert len(site.page_hits()) == PAGES and first <= PAGES + CONCURRENT
    assert crawl(TEST_CLOCK_S=-7200) == 0
    again = crawl(TEST_CLOCK_S=3700, **killed) + crawl(TEST_CLOCK_S=3800)
    assert PAGES <= again <= PAGES + CONCURRENT
    assert min(site.page_hits().values()) == 2
