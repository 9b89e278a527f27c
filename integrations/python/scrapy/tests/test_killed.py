"""Whole crawls whose requests end in all possible ways. scripts/chaos --spiders kills more spiders."""

from __future__ import annotations

import pytest

from conftest import WAYS_TO_RUN, quick
from pages import PAGES
from queues import held, make_queue, moved
from servers import until
from test_held import CONSUMERS

EVERY_PAGE = {f"/p/{n}" for n in range(PAGES)}
SETTINGS = {"CONCURRENT_REQUESTS": 4}


# Without a reactor, Scrapy has the fewest parts in common with those of other tests.
@pytest.mark.parametrize("any_reactor", quick(WAYS_TO_RUN, [*WAYS_TO_RUN][-1]), indirect=True)
def test_h3_no_request_stays_held_after_any_outcome(
    redis_server, site, start_crawl, run_urlseen, any_reactor
):
    run_urlseen({})
    site.is_broken = True
    settings = any_reactor | moved(redis_server.url) | SETTINGS
    crawl = start_crawl("Odd", settings | {"RETRY_TIMES": 1}, url=site.url)
    stats = crawl.wait()
    assert stats["finish_reason"] == "finished", crawl.log
    assert set(site.page_hits()) == EVERY_PAGE and max(site.page_hits().values()) == 1
    assert stats["spider_exceptions/RuntimeError"] > 5
    assert stats["retry/count"] and stats["downloader/response_status_count/302"]
    assert stats["errbacks"] and stats["ignored"]
    assert not held(redis_server) and not redis_server.client.exists(CONSUMERS)
    assert not redis_server.client.llen("demo:rejected")


@pytest.mark.thorough
def test_h6_a_consumer_that_is_slow_and_has_another_clock_loses_nothing(
    redis_server, site, start_crawl, run_urlseen
):
    """Heartbeats are counts, not times. So a consumer with a wrong clock does not seem stopped."""
    run_urlseen({"held.timeout": "1500ms"})
    settings = moved(redis_server.url) | SETTINGS | {"TEST_CLOCK_S": -86400}
    crawl = start_crawl("Slow", settings, url=site.url)
    idle = make_queue(redis_server, record=False)
    until(lambda: len(idle) == 0 or not crawl.process.is_alive(), "the end of the crawl")
    assert crawl.wait()["slept"] == 1, crawl.log
    assert site.hits["/"] == 1
    assert not redis_server.client.exists("urlseen:{demo:discovered}:requeues")
    idle.deliveries.close()
