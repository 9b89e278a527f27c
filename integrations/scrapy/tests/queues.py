"""Functions that make queues of this package, and functions in place of the daemon."""

from __future__ import annotations

import json
import pickle
from typing import Any

import redis
from scrapy import Request

from conftest import make_crawler
from servers import RedisServer, write_record
from urlseen_scrapy import PriorityQueue


def moved(url: str, queue: str) -> dict[str, Any]:
    """Returns the settings of a scrapy-redis project that uses this package."""
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "REDIS_URL": url,
        "DUPEFILTER_CLASS": "urlseen_scrapy.NoDupeFilter",
        "SCHEDULER_QUEUE_CLASS": f"urlseen_scrapy.{queue}",
    }


def make_queue(cls, server, settings=None, *, through=None, record=True):
    """Makes a queue in a crawler that does not run.

    The queue connects to Redis `through` this proxy, if there is one. With `record`, Redis first
    gets a crawl record.
    """
    if record:
        write_record(server.client, sink_kind=cls.kind)
    settings = {**moved(server.url, cls.__name__), **(settings or {})}
    client = server.client if through is None else redis.Redis(port=through.port)
    return cls(client, make_crawler(settings).spider, "demo:requests")


def name_of(queue) -> str:
    """Returns the name of the queue's consumer."""
    return queue.deliveries._partitions.name


def held(server) -> list[tuple[int, bytes]]:
    """Returns the number and the value of each delivery that a consumer holds."""
    keys = server.client.scan_iter("urlseen:*:held:*")
    return [(int(n), value) for key in keys for n, value in server.client.hgetall(key).items()]


def held_numbers(server) -> list[int]:
    """Returns the numbers of the deliveries that all consumers hold."""
    return [number for number, _ in held(server)]


def move_through(server, queue):
    """Moves all pushed items to the sink, as urlseen does with unseen items."""
    queue.deliveries.flush()
    while item := server.client.lpop("demo:discovered"):
        if isinstance(queue, PriorityQueue):
            server.client.zadd("demo:unseen", {item: -pickle.loads(item)["priority"]})
        else:
            server.client.rpush("demo:unseen", item)


def put(server: RedisServer, *names: str) -> None:
    """Pushes requests to the sink. The name of a request is the path of its URL."""
    for name in names:
        server.client.rpush("demo:unseen", json.dumps({"url": f"https://example.com/{name}"}))


def pushed(server: RedisServer) -> list[str]:
    """Returns the names of the requests pushed to the source, in its order."""
    found = []
    for item in server.client.lrange("demo:discovered", 0, -1):
        fields: dict[str, Any] = pickle.loads(item)
        found.append(fields["url"].rpartition("/")[2])
    return found


def waiting(server: RedisServer) -> list[str]:
    """Returns the names of the requests in the sink, in its order."""
    items = server.client.lrange("demo:unseen", 0, -1)
    return [json.loads(item)["url"].rpartition("/")[2] for item in items]


def to(name: str, **more: Any) -> Request:
    return Request(f"https://example.com/{name}", **more)
