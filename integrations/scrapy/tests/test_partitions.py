"""Crawls that are divided into partitions."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from queues import held, held_numbers, make_queue, to
from servers import until
from test_held import next_of
from urlseen_scrapy import FifoQueue
from urlseen_scrapy.consumer import Consumer
from urlseen_scrapy.partition import FULL
from urlseen_scrapy.wire import Away

COUNT = 4


@pytest.fixture
def daemon(run_urlseen):
    return run_urlseen({"partitions.count": COUNT, "held.timeout": "2s"})


@pytest.fixture
def make(redis_server, daemon):
    """Makes a queue of the divided crawl."""
    queues = []

    def make(**settings):
        queues.append(make_queue(FifoQueue, redis_server, settings, record=False))
        return queues[-1]

    yield make
    for queue in queues:
        queue.deliveries.close()


def sinks(server) -> list[list[dict]]:
    """Returns the requests in the sink of each partition."""
    table = server.client.hget("urlseen:{demo:discovered}:crawl", "tags").decode()
    return [
        [pickle.loads(item) for item in server.client.lrange(f"demo:unseen:{{{tag}}}", 0, -1)]
        for tag in table.split(",")
    ]


def fill(server, queue, count):
    """Pushes requests, and waits until all of them are in the sinks."""
    for n in range(count):
        queue.push(to(str(n)))
    assert queue.deliveries.flush()
    until(lambda: sum(map(len, sinks(server))) == count, "all requests in the sinks")


def test_a_spider_pops_from_all_partitions_in_turn(redis_server, make):
    queue = make()
    fill(redis_server, queue, 100)
    for left in (24, 23, 22):
        for _ in range(COUNT):
            assert queue.pop()
        popped = [len(each.open) for each in queue.deliveries._partitions.all]
        assert popped == [25 - left] * COUNT
    assert len(queue) == 100


def test_a_spider_pops_only_from_its_own_partitions(redis_server, make):
    queue, other = make(URLSEEN_PARTITIONS="1-2"), make(URLSEEN_PARTITIONS="0,3")
    fill(redis_server, queue, 100)
    shares = [len(items) for items in sinks(redis_server)]
    assert sum(1 for _ in iter(queue.pop, None)) == shares[1] + shares[2]
    assert [len(items) for items in sinks(redis_server)] == [shares[0], 0, 0, shares[3]]
    assert len(other) == 100, "requests that another spider holds count, too"
    assert sum(1 for _ in iter(other.pop, None)) == shares[0] + shares[3]


@pytest.mark.parametrize("value", ["4", "1-", "2-1", "", "a"])
def test_partitions_that_do_not_exist_are_refused(make, value):
    with pytest.raises(ValueError, match="URLSEEN_PARTITIONS is"):
        make(URLSEEN_PARTITIONS=value)


def test_the_bound_of_held_requests_is_for_all_partitions(redis_server, make):
    queue = make(URLSEEN_HELD_MAX=6)
    fill(redis_server, queue, 40)
    for _ in range(6):
        next_of(queue)
    assert queue.deliveries._partitions.pop() == FULL
    assert len(held(redis_server)) == 6


def test_h8_all_partitions_take_their_links_before_the_acknowledgement(redis_server, make):
    queue = make()
    fill(redis_server, queue, 1)
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine.page(page, *(to(f"link-{n}") for n in range(40)))
    for request in engine.scraper.output:
        queue.push(request)
    order = []
    with redis_server.client.monitor() as monitor:
        engine.finish(page)
        redis_server.client.ping()
        for entry in monitor.listen():
            if entry["command"] == "PING":
                break
            order.append(entry["command"])
    pushes = [n for n, each in enumerate(order) if each.startswith("RPUSH demo:discovered:{")]
    # The script of the page's own partition pushes its links, and ends with this command.
    (end,) = (n for n, each in enumerate(order) if each.startswith("HDEL urlseen:"))
    assert len(pushes) == COUNT and max(pushes) < end, "the page ended before its links were pushed"
    until(lambda: sum(map(len, sinks(redis_server))) == 40, "all links")
    assert not held(redis_server)


def test_h8_unfiltered_links_of_a_page_that_another_spider_has_are_not_pushed(redis_server, make):
    queue = make()
    fill(redis_server, queue, 1)
    page = next_of(queue)
    (partition,) = (each for each in queue.deliveries._partitions.all if each.open)
    partition.consumer.give_back([1])
    engine = queue.spider.crawler.engine
    engine.page(page, *(to(f"link-{n}", dont_filter=True) for n in range(40)))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(page)
    assert queue.spider.crawler.stats.get_value("urlseen/given_to_others") == 1
    assert len(queue) == 1, "unfiltered links were pushed twice"


def test_h8_a_spider_that_dies_before_its_acknowledgement_has_pushed_no_unfiltered_link(
    redis_server, make, monkeypatch
):
    links = [to(f"unfiltered-{n}", dont_filter=True) for n in range(40)]
    links += [to(f"filtered-{n}") for n in range(40)]

    def fetch(queue):
        """Fetches the page, and pushes its links. Returns the partition of the page."""
        page = next_of(queue)
        (home,) = (each for each in queue.deliveries._partitions.all if each.open)
        engine = queue.spider.crawler.engine
        engine.page(page, *links)
        for request in engine.scraper.output:
            queue.push(request)
        engine.finish(page)
        return home

    def die(*_):
        raise Away("the spider was killed", sent=False)

    first, second = make(), make()
    fill(redis_server, first, 1)
    with monkeypatch.context() as dying:
        dying.setattr(Consumer, "finish", die)
        home = fetch(first)
    assert held_numbers(redis_server) == [1]
    home.consumer.give_back([1])
    fetch(second)
    # All links are in the sinks if no request is anywhere else.
    until(lambda: 80 <= len(second) == sum(map(len, sinks(redis_server))), "all links")
    found = Counter(item["url"] for items in sinks(redis_server) for item in items)
    assert set(found.values()) == {1}, "an unfiltered link was pushed twice"


def test_items_that_wait_for_a_router_count(redis_server, make):
    queue = make()
    assert len(queue) == 0
    redis_server.client.rpush("demo:discovered", "https://example.com/")
    assert len(queue) == 1
    redis_server.client.rename("demo:discovered", "urlseen:{demo:discovered}:processing")
    assert len(queue) == 1


def test_h4_a_request_that_moves_between_partitions_during_the_count_counts(
    redis_server, make, monkeypatch
):
    queue, other = make(), make()
    fill(redis_server, queue, 1)
    partitions = queue.deliveries._partitions
    total = partitions._total

    def total_before_a_pop():
        """Counts 0 in place of a count whose partitions were read too early or too late."""
        monkeypatch.undo()
        assert next_of(other)
        return 0

    assert total() == 1
    monkeypatch.setattr(partitions, "_total", total_before_a_pop)
    assert partitions.count() == 1, "the crawl seemed idle"


def test_another_table_ends_the_crawl(redis_server, make):
    queue = make()
    fill(redis_server, queue, 1)
    redis_server.client.hset("urlseen:{demo:discovered}:crawl", "partitions", "1")
    partitions = queue.deliveries._partitions
    assert queue.pop()
    with pytest.raises(ValueError, match="had 4 partitions at the start of this spider, and has 1"):
        until(partitions.reconcile, "a heartbeat")
