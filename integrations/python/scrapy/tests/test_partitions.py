"""Crawls that are divided into partitions."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from scrapy.utils.request import fingerprint

from queues import held, held_numbers, make_queue, name_of, to
from scripts import give_back
from servers import until
from test_held import next_of
from urlseen._urlseen import Full

COUNT = 4


@pytest.fixture
def daemon(run_urlseen):
    return run_urlseen({"partitions.count": COUNT, "held.timeout": "2s"})


@pytest.fixture
def make(redis_server, daemon):
    """Makes a queue of the divided crawl."""
    queues = []

    def make(**settings):
        queues.append(make_queue(redis_server, settings, record=False))
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


def partition_of(request) -> int:
    """Returns the number of the partition of a request: the first bits of its fingerprint."""
    return fingerprint(request)[0] * COUNT // 256


def source_of(queue, request) -> str:
    """Returns the source of the partition of a request."""
    return queue.deliveries._consumer.sources[partition_of(request)]


def fill(server, queue, count):
    """Pushes requests, and waits until all of them are in the sinks."""
    for n in range(count):
        queue.push(to(str(n)))
    assert queue.deliveries.flush()
    until(lambda: sum(map(len, sinks(server))) == count, "all requests in the sinks")


def test_a_spider_pops_from_all_partitions_in_turn(redis_server, make):
    queue = make()
    fill(redis_server, queue, 100)
    popped = Counter()
    for left in (24, 23, 22):
        popped.update(partition_of(queue.pop()) for _ in range(COUNT))
        assert popped == Counter({number: 25 - left for number in range(COUNT)})
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
    with pytest.raises(ValueError, match="URLSEEN_PARTITIONS (is|has)"):
        make(URLSEEN_PARTITIONS=value)


def test_the_bound_of_held_requests_is_for_all_partitions(redis_server, make):
    queue = make(URLSEEN_HELD_MAX=6)
    fill(redis_server, queue, 40)
    for _ in range(6):
        next_of(queue)
    with pytest.raises(Full):
        queue.deliveries._consumer.pop()
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
    give_back(redis_server, name_of(queue), 1, source=source_of(queue, page))
    engine = queue.spider.crawler.engine
    engine.page(page, *(to(f"link-{n}", dont_filter=True) for n in range(40)))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(page)
    assert queue.spider.crawler.stats.get_value("urlseen/given_to_others") == 1
    assert len(queue) == 1, "unfiltered links were pushed twice"


def test_h8_a_spider_that_dies_before_its_acknowledgement_has_pushed_no_unfiltered_link(
    redis_server, make
):
    links = [to(f"unfiltered-{n}", dont_filter=True) for n in range(40)]
    links += [to(f"filtered-{n}") for n in range(40)]

    def fetch(queue):
        """Fetches the page, and passes its links on."""
        page = next_of(queue)
        engine = queue.spider.crawler.engine
        engine.page(page, *links)
        for request in engine.scraper.output:
            queue.push(request)
        return page

    first, second = make(), make()
    fill(redis_server, first, 1)
    page = fetch(first)
    assert first.pop() is None and first.deliveries.flush(), "the filtered links are pushed early"
    redis_server.client.config_set("maxmemory", 1)
    first.spider.crawler.engine.finish(page)
    first.deliveries._consumer.give_up_pages()
    redis_server.client.config_set("maxmemory", 0)
    assert held_numbers(redis_server) == [1]
    give_back(redis_server, name_of(first), 1, source=source_of(first, page))
    page = fetch(second)
    second.spider.crawler.engine.finish(page)
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


def test_another_table_ends_the_crawl(redis_server, make):
    queue = make()
    fill(redis_server, queue, 1)
    redis_server.client.hset("urlseen:{demo:discovered}:crawl", "partitions", "1")
    assert queue.pop()
    with pytest.raises(ValueError, match="start the spider again|cannot be used"):
        until(lambda: queue.deliveries._consumer.changed_records(), "a heartbeat")
