"""Functions that make schedulers of this package, and functions in place of the daemon."""

from __future__ import annotations

import json
import pickle
from typing import Any
from urllib.parse import parse_qsl

from scrapy import Request

from conftest import make_crawler
from servers import RedisServer, write_record
from urlseen.scrapy import Scheduler


class Queue(Scheduler):
    """Scheduler of a crawler that does not run."""

    def push(self, request: Request) -> None:
        assert self.enqueue_request(request)

    def pop(self) -> Request | None:
        return self.next_request()

    def __len__(self) -> int:
        self.deliveries.flush()
        return self.deliveries.count()


def moved(url: str) -> dict[str, Any]:
    """Returns the settings of a project whose requests pass through urlseen."""
    return {"ADDONS": {"urlseen.scrapy.Addon": 500}, "URLSEEN_URL": url}


def make_queue(server, settings=None, *, kind="list", through=None, record=True) -> Queue:
    """Makes a scheduler in a crawler that does not run.

    It connects to Redis `through` this proxy, if there is one. With `record`, Redis first gets a
    crawl record.
    """
    if record:
        write_record(server.client, sink_kind=kind)
    url = server.url if through is None else through.url
    queue = Queue(make_crawler({**moved(url), **(settings or {})}))
    queue.open(queue._crawler.spider)
    queue._crawler.engine.settle = queue.deliveries.flush
    return queue


def name_of(queue) -> str:
    """Returns the name of the queue's consumer."""
    return queue.deliveries._consumer.name


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
        record = queue.deliveries._records[0]
        _, flags, payload = item.split(b"\t", 2)
        if record["sink_kind"] == "zset":
            priority = int(dict(parse_qsl(flags.decode())).get("priority", 0))
            server.client.zadd("demo:unseen", {payload: -priority})
        else:
            server.client.rpush("demo:unseen", payload)


def put(server: RedisServer, *names: str) -> None:
    """Pushes requests to the sink. The name of a request is the path of its URL."""
    for name in names:
        server.client.rpush("demo:unseen", json.dumps({"url": f"https://example.com/{name}"}))


def pushed(server: RedisServer) -> list[str]:
    """Returns the names of the requests pushed to the source, in its order."""
    found = []
    for item in server.client.lrange("demo:discovered", 0, -1):
        fields: dict[str, Any] = pickle.loads(item.split(b"\t", 2)[2])
        found.append(fields["url"].rpartition("/")[2])
    return found


def waiting(server: RedisServer) -> list[str]:
    """Returns the names of the requests in the sink, in its order."""
    items = server.client.lrange("demo:unseen", 0, -1)
    return [json.loads(item)["url"].rpartition("/")[2] for item in items]


def to(name: str, **more: Any) -> Request:
    return Request(f"https://example.com/{name}", **more)
