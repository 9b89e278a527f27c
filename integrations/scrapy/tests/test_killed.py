"""Whole crawls whose requests end in all possible ways. scripts/chaos --spiders kills more spiders."""

from __future__ import annotations

import json

import pytest

from conftest import WAYS_TO_RUN, quick
from pages import PAGES
from queues import held, make_queue, moved
from servers import until, write_record
from test_discovered import moved as redis_spider
from test_held import CONSUMERS, names
from test_lost import COMMANDS
from urlseen_scrapy import FifoQueue

EVERY_PAGE = {f"/p/{n}" for n in range(PAGES)}
SETTINGS = {"CONCURRENT_REQUESTS": 4}


# Without a reactor, Scrapy has the fewest parts in common with those of other tests.
@pytest.mark.parametrize("any_reactor", quick(WAYS_TO_RUN, [*WAYS_TO_RUN][-1]), indirect=True)
def test_h3_no_request_stays_held_after_any_outcome(
    redis_server, site, start_crawl, run_urlseen, any_reactor
):
    run_urlseen({})
    site.is_broken = True
    settings = any_reactor | moved(redis_server.url, "FifoQueue") | SETTINGS
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
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS | {"TEST_CLOCK_S": -86400}
    crawl = start_crawl("Slow", settings, url=site.url)
    idle = make_queue(FifoQueue, redis_server, record=False)
    until(lambda: len(idle) == 0 or not crawl.process.is_alive(), "the end of the crawl")
    assert crawl.wait()["slept"] == 1, crawl.log
    assert site.hits["/"] == 1
    assert not redis_server.client.exists("urlseen:{demo:discovered}:requeues")
    idle.deliveries.close()


@pytest.mark.thorough
def test_h10_a_killed_redis_spider_loses_nothing(
    redis_server, proxy, site, start_crawl, run_urlseen
):
    run_urlseen({"sink.emit": "start-url", "held.timeout": "2s"})
    redis_server.client.rpush("demo:discovered", site.url)
    settings = redis_spider(redis_server.url) | SETTINGS
    first = start_crawl("RedisLinks", settings | {"REDIS_URL": proxy.url})
    until(lambda: len(site.page_hits()) > 20, "some pages")
    proxy.lose(COMMANDS["finish"], "answer", first.process.kill)
    first.end()
    second = start_crawl("RedisLinks", settings)
    second.wait()
    assert set(site.page_hits()) == EVERY_PAGE, second.log
    assert not held(redis_server)
    # A killed spider that held nothing is removed after the time-out.
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")


def test_h10_an_invalid_item_goes_to_the_rejects(redis_server, start_crawl):
    write_record(redis_server.client, emit="start-url")
    redis_server.client.rpush("demo:unseen", "no url", '{"meta": {}}')
    settings = redis_spider(redis_server.url) | SETTINGS
    stats = start_crawl("RedisLinks", settings).wait()
    assert stats["urlseen/unreadable"] == 2
    rejects = [json.loads(each) for each in redis_server.client.lrange("demo:rejected", 0, -1)]
    assert [each["item"] for each in rejects] == ["no url", '{"meta": {}}']
    assert not held(redis_server) and not names(redis_server)
