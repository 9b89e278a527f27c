"""Crawls in a Redis Cluster."""

from __future__ import annotations

import pytest
import redis
from urlseen._urlseen import Asker, Refused

from clusters import DAEMON_KEYS, SPIDER_KEYS
from conftest import make_crawler
from queues import held, moved, to
from servers import Daemon, until, write_record
from urlseen_scrapy import PriorityQueue, Redis, SendDiscovered, forget
from urlseen_scrapy.nodes import address_of

CLIENT = {"REDIS_PARAMS": {"redis_cls": "urlseen_scrapy.Redis"}}


@pytest.fixture
def daemon(tmp_path, cluster):
    daemon = Daemon.of_settings(tmp_path, cluster, {"sink.kind": "zset", **DAEMON_KEYS})
    yield daemon
    daemon.close()


def queue_of(cluster):
    settings = {**moved(cluster.url, "PriorityQueue"), **SPIDER_KEYS, **CLIENT}
    crawler = make_crawler(settings)
    return PriorityQueue(Redis.from_url(cluster.url), crawler.spider, "demo:requests")


def test_a_moving_slot_repeats_no_push_and_no_pop(cluster, daemon):
    queue = queue_of(cluster)
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


def test_other_parts_of_scrapy_redis_find_their_nodes(cluster):
    client = Redis.from_url(cluster.url)
    assert client.ping()
    for key in ("{a}:items", "{b}:items", "{c}:items", "{demo}:items"):
        assert client.rpush(key, "item") == 1
    assert sum(node.client.dbsize() for node in cluster.nodes) == 4
    assert all(node.client.dbsize() for node in cluster.nodes)


def test_keys_in_different_slots_are_refused_with_the_remedy(cluster):
    crawler = make_crawler(moved(cluster.url, "PriorityQueue") | CLIENT)
    with pytest.raises(ValueError) as raised:
        PriorityQueue(Redis.from_url(cluster.url), crawler.spider, "demo:requests")
    assert (
        'different slots there: URLSEEN_SOURCE_KEY = "demo:discovered", URLSEEN_SINK_KEY ='
        ' "demo:unseen". Give all of them the same text in braces' in str(raised.value)
    )


def test_a_key_of_urlseen_in_another_slot_is_refused(cluster):
    one_slot = {
        "source": "{demo}:discovered",
        "sink": "{demo}:unseen",
        "rejects": "{demo}:rejected",
    }
    write_record(cluster.client, sink_kind="zset", **one_slot)
    with pytest.raises(ValueError, match='different slots there: .*, forget.key = "demo:forget"'):
        queue_of(cluster)


def test_a_node_as_a_single_server_is_refused_with_the_remedy(cluster):
    asker = Asker(address_of(redis.Redis(port=cluster.nodes[2].port)))
    with pytest.raises(Refused, match=r'set REDIS_URL = "redis\+cluster://HOST'):
        asker.ask([b"RPUSH", b"{demo}:discovered", b"a"])


def test_send_discovered_connects_to_a_cluster(cluster):
    settings = {"REDIS_URL": cluster.url, **SPIDER_KEYS, **CLIENT}
    middleware = SendDiscovered.from_crawler(make_crawler(settings))
    middleware.deliveries.collect(to("a"), middleware.item(to("a")), bytes(20))
    assert middleware.deliveries.flush()
    assert cluster.client.llen("{demo}:discovered") == 1
    middleware.deliveries.close()
