"""Crawls whose requests pass through urlseen before the scheduler gets them."""

from __future__ import annotations

import json
import threading

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint

from pages import PAGES
from queues import held, make_queue, move_through, moved, pushed, put, to
from servers import until, write_record

EVERY_PAGE_ONCE = {f"/p/{n}": 1 for n in range(PAGES)}


def test_a_crawl_passes_through_urlseen(redis_server, run_urlseen, site, start_crawl, any_reactor):
    settings = {
        **any_reactor,
        **moved(redis_server.url),
        "URLSEEN_SERIALIZER": "json",
        # An idle engine would not ask for requests by itself.
        "TEST_HEARTBEAT_S": 3600,
    }
    for expected in (EVERY_PAGE_ONCE, {}):
        site.hits.clear()
        crawl = start_crawl("AsyncLinks", settings, url=site.url)
        if expected:
            # The daemon starts late, so that the sink is empty when the engine first asks.
            until(lambda: redis_server.client.llen("demo:discovered"), "the first request")
            run_urlseen({})
        stats = crawl.wait()
        assert site.page_hits() == expected, crawl.log
        assert stats["finish_reason"] == "finished"
        assert "ERROR" not in crawl.log


@pytest.mark.parametrize(("serializer", "kind"), [("pickle", "zset"), ("json", "list")])
def test_a_popped_request_is_the_same_as_the_pushed_one(redis_server, serializer, kind):
    queue = make_queue(redis_server, {"URLSEEN_SERIALIZER": serializer}, kind=kind)
    request = Request(
        "https://example.com/?b=1&a=2",
        method="POST",
        body=b"\xff\x00",
        headers={"X": "1"},
        meta={"ttl": "6d\t", "list": [1, 2]},
        callback=queue.spider.parse,
        cb_kwargs={"n": 1},
        priority=3,
        dont_filter=True,
    )
    queue.push(request)
    queue.deliveries.flush()
    item = redis_server.client.lindex("demo:discovered", 0)
    flags = b"\t&dont_filter&priority=3&ttl=6d \t"
    assert item.startswith(fingerprint(request).hex().encode() + flags)
    assert "fingerprint" not in item.decode("latin-1")
    move_through(redis_server, queue)
    back = queue.pop()
    assert back.to_dict(spider=queue.spider) == request.to_dict(spider=queue.spider)
    assert queue.pop() is None


def test_the_request_with_the_highest_priority_is_popped_first(redis_server):
    queue = make_queue(redis_server, kind="zset")
    for priority in (0, 5, -5, 2):
        queue.push(Request(f"https://example.com/{priority}", priority=priority))
    move_through(redis_server, queue)
    assert [queue.pop().priority for _ in range(4)] == [5, 2, 0, -5]


@pytest.mark.parametrize("kind", ["zset", "list"])
def test_h4_waiting_moving_and_held_requests_count(redis_server, kind):
    queue = make_queue(redis_server, kind=kind)
    other = make_queue(redis_server, kind=kind)
    assert len(queue) == 0
    for n in range(3):
        queue.push(Request(f"https://example.com/{n}"))
    assert len(queue) == 3
    redis_server.client.rename("demo:discovered", "urlseen:{demo:discovered}:processing")
    assert len(queue) == 3
    redis_server.client.rename("urlseen:{demo:discovered}:processing", "demo:discovered")
    queue.push(Request("https://example.com/3"))
    move_through(redis_server, queue)
    assert len(queue) == 4
    popped = [queue.pop(), other.pop()]
    assert all(popped) and len(queue) == len(other) == 4
    queue.spider.crawler.engine.finish(popped[0])
    assert len(queue) == len(other) == 3
    other.spider.crawler.engine.finish(popped[1])
    assert len(queue) == len(other) == 2


def test_other_producers_may_push_urls_and_json(redis_server):
    queue = make_queue(redis_server)
    items = [
        "https://example.com/ü",
        json.dumps({"url": "https://example.com/", "body_base64": "/w==", "callback": "parse"}),
        json.dumps({"url": "https://example.com/", "_class": "subprocess.Popen"}),
        '{"url": "https://example.com/", "method": null, "body_base64": null, "priority": 2.5}',
        '{"url": "https://example.com/", "priority": 1e400}',
        "no request",
        b"\x80nor this",
        ' \r\n\ufeff {"url": "https://example.com/marked", "dont_filter": true}',
        "https://example.com/last",
    ]
    redis_server.client.rpush("demo:unseen", *items)
    first, second, third, nulls, infinite, marked, last = (queue.pop() for _ in range(7))
    assert first.url == "https://example.com/%C3%BC"
    assert (second.body, second.callback) == (b"\xff", queue.spider.parse)
    assert type(third) is Request
    assert (nulls.method, nulls.body, nulls.priority) == ("GET", b"", 2)
    assert infinite.priority == 0
    assert (marked.url, marked.dont_filter) == ("https://example.com/marked", True)
    assert last.url == "https://example.com/last"
    assert queue.spider.crawler.stats.get_value("urlseen/unreadable") == 2
    assert queue.deliveries.flush()
    rejects = [json.loads(each) for each in redis_server.client.lrange("demo:rejected", 0, -1)]
    assert [set(each) for each in rejects] == [
        {"reason", "time", "item"},
        {"reason", "time", "item_base64"},
    ]
    assert rejects[0]["item"] == "no request"
    assert "the spider demo cannot make a request from this item: Val" in rejects[0]["reason"]
    assert len(held(redis_server)) == 7


@pytest.mark.parametrize(
    ("settings", "more", "why"),
    [
        ({}, {"callback": lambda response: None}, "is not an instance method"),
        ({}, {"meta": {"file": open}}, None),
        ({}, {"meta": {"lock": threading.Lock()}}, "cannot pickle"),
        ({"URLSEEN_SERIALIZER": "json"}, {"meta": {"a": b"1"}}, "is not JSON serializable"),
    ],
)
def test_a_request_that_cannot_be_serialized_stays_in_this_process(
    redis_server, caplog, settings, more, why
):
    queue = make_queue(redis_server, settings)
    put(redis_server, "page")
    page = until(queue.pop, "the page")
    engine = queue._crawler.engine
    engine.page(page, to("kept", **more))
    (child,) = engine.scraper.output
    queue.push(child)
    engine.finish(page)
    if why is None:
        assert pushed(redis_server) == ["kept"]
        return
    assert "https://example.com/kept" in caplog.text and why in caplog.text
    assert queue._crawler.stats.get_value("urlseen/unserializable") == 1
    assert not queue.enqueue_request(child.copy()), "it was seen"
    assert len(held(redis_server)) == 1, "the page is not finished before it"
    assert queue.has_pending_requests() and queue.pop() is child
    engine.finish(child)
    assert not held(redis_server)


def test_rejects_of_the_crawl_are_counted_and_the_first_one_is_logged(
    redis_server, monkeypatch, caplog
):
    redis_server.client.rpush("demo:rejected", "an old one")
    monkeypatch.setattr("urlseen.scrapy.deliveries.LOOK_S", 0.0)
    queue = make_queue(redis_server)
    for rejects in ([], ['{"reason": "the URL is bad"}'], ["no JSON", "{}"]):
        if rejects:
            redis_server.client.rpush("demo:rejected", *rejects)
        queue.push(Request("https://example.com/"))
        queue.deliveries.flush()
    assert queue._crawler.stats.get_value("urlseen/rejected") == 3
    assert caplog.text.count("urlseen has rejected") == 1
    assert "has rejected 1 items of this crawl: the URL is bad" in caplog.text


def test_a_missing_urlseen_is_reported(redis_server, monkeypatch, caplog):
    monkeypatch.setattr("urlseen.scrapy.waits.FIRST_WARNING_S", 0.0)
    monkeypatch.setattr("urlseen.scrapy.waits.CallLaterOnce.schedule", lambda *_: None)
    queue = make_queue(redis_server)
    assert queue.pop() is None and queue.pop() is None
    assert not caplog.text, "no warning while the source is empty"
    queue.push(Request("https://example.com/"))
    until(lambda: queue.pop() or "Is urlseen running?" in caplog.text, "the warning")
    assert queue.pop() is None


def test_an_item_that_a_starting_daemon_takes_is_counted(redis_server):
    queue = make_queue(redis_server, record=False)
    queue.push(Request("https://example.com/"))
    queue.deliveries.flush()
    record = write_record(redis_server.client)
    redis_server.client.rename("demo:discovered", record["processing"])
    assert queue.deliveries._consumer.count() == 1
