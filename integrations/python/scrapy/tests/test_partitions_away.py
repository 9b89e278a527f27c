"""Crawls in a Redis Cluster in which one node is away."""

from __future__ import annotations

import pickle
import time
from collections import Counter

import pytest
from redis.crc import key_slot
from scrapy.utils.request import fingerprint

from clusters import ClusterServers
from queues import held, make_queue, moved, to
from servers import Daemon, until
from test_held import next_of
from test_killed import SETTINGS
from test_queue import EVERY_PAGE_ONCE
from urlseen.scrapy import deliveries, forget

COUNT = 16
#: Number of the node that is away, among the primaries. It also has the partition table.
AWAY = 2


@pytest.fixture
def daemon(tmp_path, cluster):
    daemon = Daemon.of_settings(tmp_path, cluster, {"partitions.count": COUNT})
    yield daemon
    daemon.close()


@pytest.fixture
def queue(cluster, daemon):
    queue = make_queue(cluster, {"URLSEEN_TIMEOUT_S": 1}, record=False)
    yield queue
    queue.deliveries.close()


def partition_of(request) -> int:
    return fingerprint(request)[0] * COUNT // 256


def is_away(queue, partition) -> bool:
    """Returns `True` if the partition is on the node that is away."""
    source = queue.deliveries._consumer.sources[partition]
    return key_slot(source.encode()) // 5462 == AWAY


def in_sinks(servers) -> list[str]:
    """Returns the URLs in the sinks of some servers."""
    found = []
    for server in servers:
        for key in server.client.scan_iter("demo:unseen:*"):
            found += [pickle.loads(item)["url"] for item in server.client.lrange(key, 0, -1)]
    return found


def fill(cluster, queue, count) -> list[int]:
    """Pushes requests, and waits until all of them are in the sinks. Returns the share of each node."""
    for n in range(count):
        queue.push(to(str(n)))
    assert queue.deliveries.flush()
    until(lambda: len(in_sinks(cluster.nodes)) == count, "all requests in the sinks")
    return [len(in_sinks([node])) for node in cluster.nodes]


def held_by(servers) -> int:
    return sum(len(held(server)) for server in servers)


def page_of(queue, *, on_node: bool):
    """Pops requests until one comes from the node that will be away, or from another one."""
    while True:
        request = next_of(queue)
        if is_away(queue, partition_of(request)) == on_node:
            return request


def finish(queue, page, links) -> None:
    """Ends a page with these links."""
    engine = queue.spider.crawler.engine
    engine.page(page, *links)
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(page)


def links_to(queue, *, away: bool, count: int) -> list:
    """Makes links whose partitions are on the node that is away, or on the other nodes."""
    found = (to(f"link-{n}") for n in range(10_000))
    fitting = (each for each in found if is_away(queue, partition_of(each)) == away)
    return [next(fitting) for _ in range(count)]


def others(cluster) -> list:
    return [node for number, node in enumerate(cluster.nodes) if number != AWAY]


def test_a_spider_pops_from_other_partitions_and_repeats_the_lost_pop(cluster, queue, caplog):
    shares = fill(cluster, queue, 200)
    assert all(shares)
    found = [next_of(queue) for _ in range(2 * COUNT)]
    waits = []

    def pop():
        begun = time.monotonic()
        try:
            return queue.pop()
        finally:
            waits.append(time.monotonic() - begun)

    with cluster.nodes[AWAY].frozen():
        left = in_sinks(others(cluster))
        while left:
            found.append(until(pop, "a request"))
            left = in_sinks(others(cluster))
        assert pop() is None
        assert len(queue) == 1, "the crawl seemed idle"
        waited = [seconds for seconds in waits if seconds > 0.9]
        assert len(waited) == 1, "the reactor waited for each connection to the node"
        assert "Redis is away" not in caplog.text
    assert len(in_sinks(cluster.nodes)) + len(found) in (199, 200), "Redis may have executed a pop"
    while len(found) < 200:
        found.append(next_of(queue))
    urls = Counter(request.url for request in found)
    assert len(urls) == 200, "a request was popped twice"
    assert held_by(cluster.nodes) == 200
    for node in cluster.nodes:
        for key in node.client.scan_iter("urlseen:*:held:*"):
            numbers = {int(number) for number in node.client.hkeys(key)}
            assert numbers == {*range(1, len(numbers) + 1)}, "the lost pop got a new number"
    until(lambda: len(queue) == 200, "the count of all partitions")


def test_h8_a_page_waits_for_its_links_in_the_partition_that_is_away(cluster, queue):
    fill(cluster, queue, 100)
    waits, ends = (page_of(queue, on_node=False) for _ in range(2))
    at_home = page_of(queue, on_node=True)
    kept = held_by(others(cluster))
    absent = links_to(queue, away=True, count=30)
    present = links_to(queue, away=False, count=60)
    with cluster.nodes[AWAY].frozen():
        finish(queue, waits, [*absent[:20], *present[:20]])
        finish(queue, at_home, [*absent[20:], *present[20:40]])
        assert not queue.deliveries.flush()
        finish(queue, ends, present[40:])
        assert held_by(others(cluster)) == kept - 1, "only one page had all its links sent"
        own = (partition_of(waits), partition_of(at_home))
        sent = {each.url for each in present if partition_of(each) not in own}
        until(lambda: sent <= set(in_sinks(others(cluster))), "links of other partitions")
    until(queue.deliveries.flush, "the remaining links and acknowledgements")
    assert held_by(others(cluster)) == kept - 2
    links = {each.url for each in (*absent, *present)}
    until(lambda: links <= set(in_sinks(cluster.nodes)), "all links")
    assert queue.deliveries._consumer.waiting == 0
    assert queue.spider.crawler.stats.get_value("urlseen/given_to_others") is None


def test_a_page_is_acknowledged_after_all_items_that_belong_to_no_page(cluster, queue):
    fill(cluster, queue, 100)
    page = page_of(queue, on_node=False)
    kept = held_by(others(cluster))
    (loose,) = links_to(queue, away=True, count=1)
    with cluster.nodes[AWAY].frozen():
        queue.push(loose)
        finish(queue, page, [])
        assert held_by(others(cluster)) == kept, "its callback may have passed on the item"
    until(queue.deliveries.flush, "the item and the acknowledgement")
    assert held_by(others(cluster)) == kept - 1
    until(lambda: loose.url in in_sinks(cluster.nodes), "the item")


def test_a_spider_with_many_waiting_links_pops_nothing(cluster, queue, monkeypatch, caplog):
    monkeypatch.setattr(deliveries, "PAUSE_BYTES", 1000)
    fill(cluster, queue, 100)
    links = links_to(queue, away=True, count=20)
    with cluster.nodes[AWAY].frozen():
        for link in links:
            queue.push(link)
        assert not queue.deliveries.flush()
        assert queue.deliveries._pop() is None
        assert "of links wait for partitions that are away" in caplog.text
    assert next_of(queue)


def test_urlseen_forgets_a_request_of_a_partition_that_was_away(cluster, queue):
    gone, here = links_to(queue, away=True, count=1), links_to(queue, away=False, count=1)
    with cluster.nodes[AWAY].frozen():
        for request in (*gone, *here):
            assert forget(request, queue.spider.crawler)
        assert not queue.deliveries.flush()
        assert queue.spider.crawler.stats.get_value("urlseen/forgotten") == 1
    until(queue.deliveries.flush, "the request to forget")
    assert queue.spider.crawler.stats.get_value("urlseen/forgotten") == 2


def test_a_closing_spider_leaves_the_partitions_that_answer(cluster, queue, monkeypatch, caplog):
    monkeypatch.setattr(deliveries, "CLOSE_WAIT_S", 0.0)
    shares = fill(cluster, queue, 100)
    for _ in range(100):
        next_of(queue)
    with cluster.nodes[AWAY].frozen():
        queue.deliveries.close()
        assert held_by(others(cluster)) == 0
        assert len(in_sinks(others(cluster))) == 100 - shares[AWAY]
        assert "Redis does not take its last items" in caplog.text
    # The node may have got the command to requeue the requests of one partition.
    until(
        lambda: held_by(cluster.nodes) + len(in_sinks(cluster.nodes)) == 100, "all other requests"
    )


@pytest.mark.thorough
def test_a_crawl_goes_on_without_a_node_until_its_replica_takes_over(tmp_path, site, start_crawl):
    (tmp_path / "cluster").mkdir()
    cluster = ClusterServers(tmp_path / "cluster", replicas=True)
    daemon = Daemon.of_settings(tmp_path, cluster, {"partitions.count": COUNT})
    settings = moved(cluster.url) | SETTINGS | {"URLSEEN_TIMEOUT_S": 1}
    crawl = start_crawl("Links", settings, url=site.url)
    until(lambda: len(site.page_hits()) > 20, "some pages")
    site.is_open.clear()
    until(lambda: is_quiet(cluster), "a pause, with all writes on the replicas")
    with cluster.nodes[AWAY].frozen():
        hits = len(site.page_hits())
        site.is_open.set()
        until(lambda: len(site.page_hits()) > hits + 20, "pages of other partitions")
        cluster.take_over(AWAY)
        stats = crawl.wait()
        assert site.page_hits() == EVERY_PAGE_ONCE, crawl.log
        assert stats["finish_reason"] == "finished" and "ERROR" not in crawl.log
        assert "goes on with other partitions" in crawl.log and "answers again" in crawl.log
        assert not held_by(cluster.nodes)
    daemon.close()
    cluster.close()


def is_quiet(cluster) -> bool:
    """Returns `True` if the spider waits for all its pages, and urlseen for their links."""
    lists = ("demo:discovered*", "*:processing")
    waiting = [key for node in cluster.nodes for each in lists for key in node.client.keys(each)]
    is_held = held_by(cluster.nodes) == SETTINGS["CONCURRENT_REQUESTS"]
    return is_held and not waiting and all(map(cluster.is_copied, range(3)))
