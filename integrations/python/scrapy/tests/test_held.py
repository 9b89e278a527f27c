"""Held requests: Redis holds a popped request until the spider has finished it.

A test name begins with the rules of the protocol that the test checks:

H1   a lost reply, a late command or a failover loses no delivery and repeats none
H2   a page whose request another consumer has got pushes no links
H3   a request is held until it is finished, with any outcome
H4   the count of requests includes waiting, moving and held requests
H5   the requests of a stopped consumer are requeued, or go to the rejects in the end
H6   a consumer that is alive keeps its requests
H7   equal requests and consumers with equal names are separate
H8   links and acknowledgement are one step
H9   asking can lose a link in a crash
"""

from __future__ import annotations

import hashlib

import pytest

from queues import held, held_numbers, make_queue, name_of, pushed, put, to, waiting
from scripts import give_back
from servers import until
from urlseen.scrapy.engine import RELIED_ON, check_engine

CONSUMERS = "urlseen:{demo:discovered}:consumers"
REQUEUES = "urlseen:{demo:discovered}:requeues"


def next_of(queue):
    """Waits until the queue has a request, and returns it."""
    return until(queue.pop, "a request")


def names(server):
    return [name.decode() for name in server.client.hkeys(CONSUMERS)]


@pytest.fixture
def queue(redis_server):
    queue = make_queue(redis_server)
    yield queue
    queue.deliveries.close()


def test_h2_a_page_that_another_spider_has_pushes_nothing(redis_server, queue):
    put(redis_server, "a")
    other = make_queue(redis_server)
    slow = next_of(queue)
    slow_engine, engine = queue.spider.crawler.engine, other.spider.crawler.engine
    give_back(redis_server, name_of(queue), 1)
    fast = next_of(other)
    assert fast.url == slow.url
    for page, its_queue, its_engine in ((fast, other, engine), (slow, queue, slow_engine)):
        its_engine.page(page, to("unfiltered", dont_filter=True))
        its_queue.push(its_engine.scraper.output[0])
        its_engine.finish(page)
    assert pushed(redis_server) == ["unfiltered"]
    assert queue.spider.crawler.stats.get_value("urlseen/given_to_others") == 1
    assert not held(redis_server) and not redis_server.client.exists(REQUEUES)


def test_h2_unfiltered_links_wait_for_the_acknowledgement(redis_server, queue):
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    early = [str(n) for n in range(1000)]
    engine.page(page, to("u", dont_filter=True), *map(to, early), to("last"))
    for request in engine.scraper.output:
        queue.push(request)
    assert queue.deliveries.flush()
    assert pushed(redis_server) == early, "enough links for a push are sent early"
    assert queue.pop() is None and queue.deliveries.flush()
    assert pushed(redis_server) == [*early, "last"], "without other work, all links are sent"
    engine.finish(page)
    assert pushed(redis_server) == [*early, "last", "u"]


def test_h3_a_delivery_is_found_by_its_request_and_not_by_meta(redis_server, queue):
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    copies = [to(name, meta=page.meta) for name in ("1", "2")]
    engine.page(page, *copies, page.replace(url="https://example.com/3"))
    for request in engine.scraper.output:
        queue.push(request)
        engine.finish(request)
    assert (len(held(redis_server)), pushed(redis_server)) == (1, []), "a link ended its page"
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["1", "2", "3"])
    assert page.meta == {}


@pytest.mark.parametrize("is_held", [True, False])
def test_h3_a_retry_and_a_redirect_are_pushed_with_the_acknowledgement(
    redis_server, queue, is_held
):
    put(redis_server, "a")
    page = next_of(queue)
    retry = page.replace(dont_filter=True)
    engine = queue.spider.crawler.engine
    engine._handle_downloader_output(retry, page)
    queue.push(retry)
    if not is_held:
        # Another spider has the page now, and retries it.
        give_back(redis_server, name_of(queue), 1)
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["a"] if is_held else [])


def test_h3_a_middleware_that_returns_the_request_itself_loses_nothing(redis_server, queue):
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine._handle_downloader_output(page, page)
    queue.push(page)
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["a"])


@pytest.mark.parametrize(("where", "path", "_"), RELIED_ON)
def test_h3_a_scrapy_without_the_needed_methods_is_refused(
    redis_server, monkeypatch, where, path, _
):
    check_engine()
    owner, _, name = path.rpartition(".")
    monkeypatch.delattr(getattr(where, owner) if owner else where, name)
    with pytest.raises(RuntimeError, match=f"has no {path}"):
        make_queue(redis_server)


def test_h4_links_are_sent_before_the_count(redis_server, queue):
    queue.push(to("1"))
    assert len(queue) == 1
    assert pushed(redis_server) == ["1"]


def test_h7_equal_requests_and_equal_names_are_separate(redis_server):
    put(redis_server, "a", "a")
    settings = {"URLSEEN_CONSUMER": "twin"}
    twins = [make_queue(redis_server, settings) for _ in range(2)]
    pages = [next_of(twin) for twin in twins]
    assert len({*names(redis_server)}) == 2
    assert all(name.startswith("twin#") for name in names(redis_server))
    twins[0].spider.crawler.engine.finish(pages[0])
    assert len(held(redis_server)) == 1
    put(redis_server, "a")
    again = next_of(twins[0])
    assert again.url == pages[0].url
    twins[1].spider.crawler.engine.finish(pages[1])
    assert held_numbers(redis_server) == [2]
    for twin in twins:
        twin.deliveries.close()


def test_h8_links_and_acknowledgement_are_one_step(redis_server, queue, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, why: closed.append(why))
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine.page(page, to("1"))
    queue.push(engine.scraper.output[0])
    redis_server.client.set("demo:discovered", "text")
    engine.finish(page)
    assert len(held(redis_server)) == 1, "no acknowledgement without the links of the page"
    assert closed == ["urlseen_refused"]
    redis_server.client.delete("demo:discovered")


def test_h5_a_request_that_may_have_killed_its_consumers_is_held_alone(redis_server, queue):
    put(redis_server, "new", "suspect", "next")
    item = redis_server.client.lindex("demo:unseen", 1)
    redis_server.client.hset(REQUEUES, hashlib.sha1(item).hexdigest(), "2 one#1 other#2")
    engine = queue.spider.crawler.engine
    for name in ("new", "suspect", "next"):
        page = next_of(queue)
        assert page.url.endswith(name)
        assert queue.deliveries._consumer.pop() is None
        engine.finish(page)
    assert not held(redis_server) and not redis_server.client.exists(REQUEUES)


def test_a_closing_spider_requeues_unfinished_requests(redis_server):
    put(redis_server, "a", "b", "c")
    for name in ("a", "b", "c"):
        queue = make_queue(redis_server)
        queue.push(to(f"loose-{name}"))
        before = waiting(redis_server)
        left = [next_of(queue) for _ in before]
        queue.spider.crawler.engine.finish(left[0])
        queue.deliveries.close()
        assert sorted(waiting(redis_server)) == sorted(before[1:])
        assert not held(redis_server) and not names(redis_server)
        assert not redis_server.client.exists(REQUEUES), "these deliveries do not count"
    assert pushed(redis_server) == ["loose-a", "loose-b", "loose-c"]


def test_the_number_of_held_requests_is_bounded(redis_server, caplog):
    put(redis_server, "a", "b", "c")
    queue = make_queue(redis_server, {"URLSEEN_HELD_MAX": 2})
    pages = [next_of(queue), next_of(queue)]
    assert queue.pop() is None
    assert "holds 2 requests (URLSEEN_HELD_MAX)" in caplog.text
    queue.spider.crawler.engine.finish(pages[0])
    assert next_of(queue).url.endswith("/c")
    queue.deliveries.close()


def test_a_held_value_that_another_program_wrote_ends_the_crawl(redis_server, queue, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, why: closed.append(why))
    key = f"urlseen:{{demo:discovered}}:held:{name_of(queue)}"
    redis_server.client.hset(key, "1", "text")
    assert queue.pop() is None
    assert closed == ["urlseen_refused"]
