"""The middleware `SendDiscovered`: spiders send links to urlseen instead of the scheduler."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.request import fingerprint

from conftest import make_crawler, run
from pages import PAGES
from queues import held
from servers import until, write_record
from urlseen_scrapy import SendDiscovered

EVERY_PAGE_ONCE = {f"/p/{n}": 1 for n in range(PAGES)}
RESPONSE = Response("https://example.com/")


def moved(url: str) -> dict[str, Any]:
    """Returns the settings of a project of RedisSpiders that uses this package."""
    return {
        "REDIS_URL": url,
        "REDIS_START_URLS_KEY": "%(name)s:unseen",
        "SPIDER_MIDDLEWARES": {"urlseen_scrapy.SendDiscovered": 50},
        "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
    }


@pytest.mark.parametrize("spider", ["RedisLinks", "AsyncRedisLinks"])
def test_a_crawl_passes_through_urlseen(
    redis_server, run_urlseen, site, start_crawl, reactor, spider
):
    run_urlseen({"sink.emit": "start-url"})
    redis_server.client.rpush("demo:discovered", site.url)
    crawl = start_crawl(spider, {**reactor, **moved(redis_server.url)})
    stats = crawl.wait()
    assert site.page_hits() == EVERY_PAGE_ONCE, crawl.log
    assert "ERROR" not in crawl.log
    assert stats["urlseen/sent"] > PAGES
    assert site.hits["/moved"] > 0


@pytest.fixture
def sender(redis_server):
    write_record(redis_server.client, emit="start-url")
    return SendDiscovered(make_crawler(moved(redis_server.url)))


def sent(server, sender) -> list[dict[str, Any]]:
    sender.deliveries.flush()
    return [json.loads(item) for item in server.client.lrange("demo:discovered", 0, -1)]


def through(sender, *output):
    return list(sender.process_spider_output(RESPONSE, iter(output)))


def through_async(sender, *output):
    async def results():
        for each in output:
            yield each

    async def collect():
        return [each async for each in sender.process_spider_output_async(RESPONSE, results())]

    return run(collect())


@pytest.mark.parametrize("pass_through", [through, through_async])
def test_requests_are_sent_and_other_results_pass(redis_server, sender, pass_through):
    head = Request(
        "https://example.com/?b=1&a=2",
        method="HEAD",
        meta={"depth": 1, "list": [None, True, 1.5, "x"]},
        priority=2,
        dont_filter=True,
        headers={"Referer": "https://example.com/"},
    )
    item = {"url": "https://example.com/"}
    plain = Request("https://example.com/a")
    assert pass_through(sender, head, item, plain) == [item]
    assert sent(redis_server, sender) == [
        {
            "url": head.url,
            "method": "HEAD",
            "meta": head.meta,
            "dont_filter": True,
            "priority": 2,
            "fingerprint": fingerprint(head).hex(),
        },
        {"url": plain.url, "fingerprint": fingerprint(plain).hex()},
    ]


def other_callback(response):
    return None


@pytest.mark.parametrize(
    "more",
    [
        {"method": "POST", "body": "x"},
        {"headers": {"X": "1"}},
        {"cookies": {"a": "1"}},
        {"callback": other_callback},
        {"errback": other_callback},
        {"cb_kwargs": {"n": 1}},
        {"flags": ["x"]},
        {"meta": {"tuple": (1, 2)}},
        {"meta": {"object": object()}},
        {"meta": {1: "x"}},
        {"meta": {"nan": float("nan")}},
    ],
)
def test_requests_that_an_item_cannot_express_go_to_the_scheduler(
    redis_server, sender, more, caplog
):
    caplog.set_level("INFO")
    request = Request("https://example.com/", **more)
    assert through(sender, request) == [request]
    assert sent(redis_server, sender) == []
    assert f"could not pass on its {list(more)[-1]}" in caplog.text


def test_requests_of_a_callback_that_failed_later_are_sent(redis_server, sender):
    def callback():
        yield Request("https://example.com/a")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        list(sender.process_spider_output(RESPONSE, callback()))
    assert len(sent(redis_server, sender)) == 1

    async def async_callback():
        yield Request("https://example.com/b")
        raise RuntimeError("broken")

    async def collect():
        return [e async for e in sender.process_spider_output_async(RESPONSE, async_callback())]

    with pytest.raises(RuntimeError):
        run(collect())
    assert len(sent(redis_server, sender)) == 2


@pytest.fixture
def page(redis_server, sender):
    """Pops the request of a page. Redis then holds this request for the spider."""
    redis_server.client.rpush("demo:unseen", json.dumps({"url": RESPONSE.url}))
    delivery = sender.deliveries.pop()
    request = Request(RESPONSE.url)
    sender.deliveries.took(delivery, request)
    return request


def test_h10_an_item_is_held_until_all_its_requests_are_finished(redis_server, sender, page):
    engine = sender.deliveries._crawler.engine
    child, grandchild = (Request(f"https://example.com/{n}", body="x") for n in range(2))
    engine.page(page, child)
    engine.finish(page)
    assert len(held(redis_server)) == 1, "the child of the page is still in the scheduler"
    engine.page(child, grandchild)
    engine.finish(child)
    response = Response(grandchild.url, request=grandchild)
    link = Request("https://example.com/link", dont_filter=True)
    assert list(sender.process_spider_output(response, iter([link]))) == []
    assert sent(redis_server, sender) == [], "an unfiltered link waits for the end"
    engine.finish(grandchild)
    assert len(sent(redis_server, sender)) == 1
    assert held(redis_server) == []


def test_h10_a_dropped_child_does_not_delay_the_acknowledgement(redis_server, sender, page):
    engine = sender.deliveries._crawler.engine
    engine.page(page, Request("https://example.com/0"), Request("https://example.com/1"))
    first, _ = engine.scraper.output
    engine.finish(page)
    sender.deliveries.dropped(first)
    assert len(held(redis_server)) == 1
    # An IgnoreRequest in the signal request_scheduled has the same effect.
    engine.scraper.output.clear()
    del first, _
    gc.collect()
    until(lambda: sender.deliveries.pop() or not held(redis_server), "the acknowledgement")
    assert held(redis_server) == []
