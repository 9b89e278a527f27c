"""Crawls in a Redis Cluster."""

from __future__ import annotations

import pytest

from clusters import DAEMON_KEYS, SPIDER_KEYS
from queues import held, make_queue, to
from servers import Daemon, until
from urlseen._urlseen import Address, Asker, Refused
from urlseen.scrapy import forget


@pytest.fixture
def daemon(tmp_path, cluster):
    daemon = Daemon.of_settings(tmp_path, cluster, {"sink.kind": "zset", **DAEMON_KEYS})
    yield daemon
    daemon.close()


def test_a_moving_slot_repeats_no_push_and_no_pop(cluster, daemon):
    queue = make_queue(cluster, SPIDER_KEYS, record=False)
    engine = queue.spider.crawler.engine
    found = []

    def pop(count):
        for _ in range(count):
            found.append(until(queue.pop, "a request"))

    for n in range(20):
        queue.push(to(str(n)))
    pop(10)
    cluster.begin_move()
    queue.push(to("20"))
    for request in found[:5]:
        engine.finish(request)
    assert cluster.move_keys(1) == 1
    for request in found[5:]:
        engine.finish(request)
    # The lists are on two nodes now.
    assert not queue.deliveries.flush()
    assert queue.pop() is None and len(queue) == 1
    queue.push(to("21"))
    forget(to("0"), queue.spider.crawler)
    cluster.end_move()
    pop(12)
    for request in found[10:]:
        engine.finish(request)
    until(lambda: queue.deliveries.flush() and len(queue) == 0, "an idle crawl")
    assert not held(cluster)
    assert sorted(int(each.url.rpartition("/")[2]) for each in found) == list(range(22))
    lists = ("{demo}:forget", "urlseen:{demo}:discovered:forgetting")
    until(lambda: not cluster.client.exists(*lists), "urlseen to forget")
    queue.push(to("0"))
    assert until(queue.pop, "the forgotten request").url.endswith("/0")
    queue.deliveries.close()


def test_a_node_as_a_single_server_is_refused_with_the_remedy(cluster):
    asker = Asker(Address(cluster.nodes[2].url, 1.0, 1.0))
    with pytest.raises(Refused, match=r"write the address of a Redis Cluster as redis\+cluster://"):
        asker.ask([b"RPUSH", b"{demo}:discovered", b"a"])
