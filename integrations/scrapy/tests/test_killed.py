"""Whole crawls in which spiders are killed and servers are away."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint

from pages import PAGES
from queues import (
    held,
    held_numbers,
    make_queue,
    moved,
    partition_of,
    pushed,
    put,
    to,
    waiting,
)
from servers import Proxy, RedisServer, until, write_record
from test_dupefilter import DUPEFILTER, scrapy_redis
from test_held import CONSUMERS, names, next_of
from test_lost import COMMANDS
from urlseen_scrapy import FifoQueue

pytestmark = pytest.mark.faults

EVERY_PAGE = {f"/p/{n}" for n in range(PAGES)}
EVERY_MORE = {f"/more/{n}" for n in range(PAGES)}
SETTINGS = {"CONCURRENT_REQUESTS": 4, "TEST_HEARTBEAT_S": 0.5}


@pytest.fixture
def short_timeout(run_urlseen):
    """Starts a daemon with a short `held.timeout`."""
    return run_urlseen({"held.timeout": "2s"})


def kill_at(proxy, crawl, server, command, what) -> set[str]:
    """Kills a spider when it next sends `command`, or before it gets the answer.

    Returns the paths of the requests that the spider then holds.
    """
    proxy.lose(command, what, crawl.process.kill)
    crawl.process.wait(timeout=100)
    assert proxy.to_lose == 0
    return paths(held(server))


def paths(deliveries) -> set[str]:
    return set(re.findall("/(?:p|more)/[0-9]+", str(deliveries)))


def fetched_twice(site) -> set[str]:
    return {path for path, n in list(site.hits.items()) if n > 1 and re.match("/(p|more)/", path)}


@pytest.mark.parametrize("what", ["question", "answer"])
@pytest.mark.parametrize("command", ["pop", "finish"])
def test_h1_h4_h5_a_killed_spider_loses_nothing(
    redis_server, proxy, site, start_crawl, short_timeout, command, what
):
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS
    first = start_crawl("Links", settings | {"REDIS_URL": proxy.url}, url=site.url)
    until(lambda: len(site.page_hits()) > 5, "some pages")
    kept = kill_at(proxy, first, redis_server, COMMANDS[command], what)
    # The first spider may hold all remaining requests. The second spider waits for them.
    second = start_crawl("Links", settings, url=site.url)
    assert second.wait()["finish_reason"] == "finished", second.log
    assert set(site.page_hits()) == EVERY_PAGE
    assert fetched_twice(site) <= kept, "only what it held is fetched again"
    assert not held(redis_server)
    # A killed spider that held nothing is removed after the time-out.
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")


@pytest.mark.parametrize("what", ["question", "answer"])
@pytest.mark.parametrize(
    ("command", "to_pass"),
    # The first push has the start request. The second push has the links of a page in work.
    [("push", 0), ("push", 1), ("beat", 1), ("count", 1), ("reject", 0), ("requeue", 0)],
)
def test_h1_h3_h5_a_spider_may_be_killed_at_any_command(
    redis_server, proxy, site, start_crawl, short_timeout, command, to_pass, what
):
    redis_server.client.rpush("demo:unseen", "no request")
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS
    proxy.to_pass = to_pass
    first = start_crawl("Wide", settings | {"REDIS_URL": proxy.url}, url=site.url)
    kept = kill_at(proxy, first, redis_server, COMMANDS[command], what)
    second = start_crawl("Wide", settings, url=site.url)
    assert second.wait()["finish_reason"] == "finished", second.log
    assert set(site.page_hits()) == EVERY_PAGE
    assert fetched_twice(site) <= kept, "only what it held is fetched again"
    assert redis_server.client.llen("demo:rejected") == 1
    # A spider that was killed at its end held nothing, so no spider waited for it.
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")
    assert not held(redis_server)


def test_h7_spiders_with_the_same_name_are_separate(
    redis_server, proxy, site, start_crawl, short_timeout
):
    """Names have a random part. Without it, equal names would share their held requests."""
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS | {"URLSEEN_CONSUMER": "twin"}
    # No spider can fetch all pages before the other one has started.
    site.is_open.clear()
    first = start_crawl("Links", settings | {"REDIS_URL": proxy.url}, url=site.url)
    second = start_crawl("Links", settings, url=site.url)
    until(lambda: len(names(redis_server)) == 2, "both to pop")
    site.is_open.set()
    kept = kill_at(proxy, first, redis_server, COMMANDS["finish"], "question")
    assert second.wait()["finish_reason"] == "finished", second.log
    assert set(site.page_hits()) == EVERY_PAGE
    assert fetched_twice(site) <= kept, "only what the first one held is fetched again"
    assert not held(redis_server)
    # A killed spider that held nothing is removed after the time-out.
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")


def test_h2_a_spider_that_was_paused_too_long_repeats_nothing(
    redis_server, site, start_crawl, short_timeout
):
    """During the pause, another spider finishes the pages and pushes their links."""
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS | {"HTTPERROR_ALLOW_ALL": True}
    first = start_crawl("Unfiltered", settings, url=site.url)
    until(lambda: len(site.page_hits()) > 5, "some pages")
    first.process.send_signal(signal.SIGSTOP)
    os.waitpid(first.process.pid, os.WUNTRACED)
    # Before Redis answers, it executes the commands that the spider had sent.
    redis_server.client.ping()
    kept = paths(held(redis_server))
    second = start_crawl("Unfiltered", settings, url=site.url)
    assert second.wait()["finish_reason"] == "finished", second.log
    first.process.send_signal(signal.SIGCONT)
    assert first.wait()["finish_reason"] == "finished", first.log
    assert set(site.page_hits()) == EVERY_PAGE
    assert {path for path in site.hits if "/more/" in path} == EVERY_MORE
    assert fetched_twice(site) <= kept, "only what it held is fetched again"
    assert not held(redis_server)
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")


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
    assert stats["spider_exceptions/RuntimeError"] > 10
    assert stats["retry/count"] and stats["downloader/response_status_count/302"]
    assert stats["errbacks"] and stats["ignored"]
    assert not held(redis_server) and not redis_server.client.exists(CONSUMERS)
    assert not redis_server.client.llen("demo:rejected")


@pytest.mark.parametrize("day_s", [86400, -86400])
def test_h6_a_consumer_that_is_slow_and_has_another_clock_loses_nothing(
    redis_server, site, start_crawl, run_urlseen, day_s
):
    """Heartbeats are counts, not times. So a consumer with a wrong clock does not seem stopped."""
    run_urlseen({"held.timeout": "1500ms"})
    settings = moved(redis_server.url, "FifoQueue") | SETTINGS | {"TEST_CLOCK_S": day_s}
    crawl = start_crawl("Slow", settings, url=site.url)
    idle = make_queue(FifoQueue, redis_server, record=False)
    partition = partition_of(idle)
    until(lambda: partition.reclaim() or crawl.process.poll() is not None, "the end of the crawl")
    assert crawl.wait()["slept"] == 1, crawl.log
    assert site.hits["/"] == 1
    assert not redis_server.client.exists("urlseen:{demo:discovered}:requeues")
    idle.deliveries.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_of_redis_loses_nothing(redis_server, site, start_crawl, run_urlseen, number):
    run_urlseen({})
    crawl = start_crawl("Links", moved(redis_server.url, "FifoQueue") | SETTINGS, url=site.url)
    for noticed, fetched in ((1, 20), (2, 100)):
        # Redis must write before it answers, even to a slow disk. A restart resets this setting.
        redis_server.client.config_set("appendfsync", "always")
        until(lambda fetched=fetched: len(site.page_hits()) > fetched, f"{fetched} pages")
        redis_server.stop(number)
        until(lambda noticed=noticed: crawl.log.count("Redis is away") == noticed, "a notice")
        redis_server.start()
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    assert set(site.page_hits()) == EVERY_PAGE and max(site.page_hits().values()) == 1
    assert not held(redis_server) and "Unhandled" not in crawl.log


@pytest.fixture
def replica(redis_server, tmp_path):
    folder = tmp_path / "replica"
    folder.mkdir()
    # Redis must not have to write a file before it can be stopped.
    primary = ["--appendonly", "no", "--replicaof", "127.0.0.1", str(redis_server.port)]
    server = RedisServer(folder, *primary)
    until(lambda: server.client.info("replication")["master_link_status"] == "up", "the replica")
    yield server
    server.close()


def test_h1_an_acknowledgement_that_a_failover_lost_is_repeated(redis_server, proxy, replica):
    put(redis_server, "a", "b")
    queue = make_queue(FifoQueue, redis_server, through=proxy)
    engine = queue.spider.crawler.engine
    page = next_of(queue)
    assert redis_server.client.wait(1, 10000) == 1
    # The replica lags from here on.
    replica.client.replicaof("NO", "ONE")
    engine.page(page, to("1"), to("u", dont_filter=True))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(page)
    other = next_of(queue)
    assert (pushed(redis_server), held_numbers(redis_server)) == (["1", "u"], [2])
    proxy.lead_to(replica.port)
    # In the replica, the page is held again, and the other request waits again.
    until(lambda: len(queue) and waiting(replica) == ["a", "b"], "the page to be given back")
    assert not held(replica)
    engine.page(other, to("other", dont_filter=True))
    queue.push(engine.scraper.output[0])
    engine.finish(other)
    assert pushed(replica) == [], "the page is fetched again, and then pushes its links"
    again = next_of(queue)
    assert again.url == page.url
    engine.page(again, to("1"), to("u", dont_filter=True))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(again)
    assert pushed(replica) == ["1", "u"]
    queue.deliveries.close()


def test_h1_a_crawl_continues_at_a_replica_that_lagged(
    redis_server, proxy, replica, site, start_crawl, run_urlseen
):
    """The replica lacks some pops, acknowledgements and commits. The crawl repeats them."""
    run_urlseen({"redis.url": f"{proxy.url}/0", "held.timeout": "2s"})
    crawl = start_crawl("Links", moved(proxy.url, "FifoQueue") | SETTINGS, url=site.url)
    until(lambda: len(site.page_hits()) > 20, "some pages")
    # The replica lags from here on.
    replica.client.replicaof("NO", "ONE")
    lacking = len(site.page_hits()) + 40
    until(lambda: len(site.page_hits()) > lacking, "some more")
    proxy.lead_to(replica.port)
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    assert set(site.page_hits()) == EVERY_PAGE
    assert not held(replica) and not replica.client.exists(CONSUMERS)


def test_a_spider_waits_for_the_promotion_of_a_replica(redis_server, proxy, replica):
    put(redis_server, "a")
    queue = make_queue(FifoQueue, redis_server, through=proxy)
    page = next_of(queue)
    redis_server.client.wait(1, 10000)
    proxy.lead_to(replica.port)
    queue.spider.crawler.engine.finish(page)
    assert queue.pop() is None
    replica.client.replicaof("NO", "ONE")
    until(lambda: queue.deliveries.flush() and not held(replica), "the acknowledgement")
    queue.deliveries.close()


def test_h9_asking_loses_the_link_between_answer_and_queue(
    seen_server, redis_server, site, start_crawl
):
    """This loss is documented in docs/guides/asking.md. Only a forgotten link is fetched again."""
    proxy = Proxy(seen_server.port)
    settings = scrapy_redis(redis_server.url) | DUPEFILTER | {"SCHEDULER_PERSIST": True}
    first = start_crawl("Links", settings | {"URLSEEN_URL": proxy.url}, url=site.url)
    proxy.lose(b"SADD", "answer", first.process.kill)
    first.process.wait(timeout=100)
    proxy.close()
    lost = "/p/0"
    for expected in (EVERY_PAGE - {lost}, {lost}):
        site.hits.clear()
        crawl = start_crawl("Links", settings | {"URLSEEN_URL": seen_server.url}, url=site.url)
        assert crawl.wait()["finish_reason"] == "finished", crawl.log
        assert set(site.page_hits()) == expected
        link = Request(site.url.rstrip("/") + lost + "?x=1&y=2")
        assert seen_server.client.srem("demo:dupefilter", fingerprint(link).hex()) == 1


@pytest.mark.parametrize("what", ["question", "answer"])
def test_h10_a_killed_redis_spider_loses_nothing(
    redis_server, proxy, site, start_crawl, run_urlseen, what
):
    from test_discovered import moved as redis_spider

    run_urlseen({"sink.emit": "start-url", "held.timeout": "2s"})
    redis_server.client.rpush("demo:discovered", site.url)
    settings = redis_spider(redis_server.url) | {"MAX_IDLE_TIME_BEFORE_CLOSE": 1} | SETTINGS
    first = start_crawl("RedisLinks", settings | {"REDIS_URL": proxy.url})
    until(lambda: len(site.page_hits()) > 20, "some pages")
    kill_at(proxy, first, redis_server, COMMANDS["finish"], what)
    second = start_crawl("RedisLinks", settings)
    second.wait()
    assert set(site.page_hits()) == EVERY_PAGE, second.log
    assert not held(redis_server)
    # A killed spider that held nothing is removed after the time-out.
    until(lambda: not redis_server.client.exists(CONSUMERS), "its entry to be removed")


def test_h10_an_invalid_item_goes_to_the_rejects(redis_server, start_crawl):
    from test_discovered import moved as redis_spider

    write_record(redis_server.client, emit="start-url")
    redis_server.client.rpush("demo:unseen", "no url", '{"meta": {}}')
    settings = redis_spider(redis_server.url) | {"MAX_IDLE_TIME_BEFORE_CLOSE": 1} | SETTINGS
    stats = start_crawl("RedisLinks", settings).wait()
    assert stats["urlseen/unreadable"] == 2
    rejects = [json.loads(each) for each in redis_server.client.lrange("demo:rejected", 0, -1)]
    assert [each["item"] for each in rejects] == ["no url", '{"meta": {}}']
    assert not held(redis_server) and not names(redis_server)
