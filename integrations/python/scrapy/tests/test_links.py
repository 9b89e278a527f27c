"""Pushes of links: the spider sends the links of a page together."""

from __future__ import annotations

from queues import held, make_queue, pushed, put, to
from servers import until, write_record
from test_held import CONSUMERS, names, next_of
from urlseen.scrapy import forget


def page_with(queue, count, **more):
    """Pops the request of a page, and puts `count` links of this page into the queue."""
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine.page(page, *(to(str(n), **more) for n in range(count)))
    for request in engine.scraper.output:
        queue.push(request)
    return page


def commands(server) -> int:
    stats = server.client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval"))


def test_the_links_of_a_page_are_one_push(redis_server):
    put(redis_server, "warm", "page")
    queue = make_queue(redis_server)
    queue.spider.crawler.engine.finish(page_with(queue, 1))
    redis_server.client.config_resetstat()
    page = page_with(queue, 42)
    queue.spider.crawler.engine.finish(page)
    assert len(pushed(redis_server)) == 43
    assert commands(redis_server) == 2, "a pop and an acknowledgement"
    assert redis_server.client.info("commandstats")["cmdstat_rpush"]["calls"] == 1
    queue.deliveries.close()


def test_a_push_is_bounded_by_bytes(redis_server):
    put(redis_server, "page")
    queue = make_queue(redis_server)
    page_with(queue, 20, cb_kwargs={"text": "x" * 100_000})
    assert queue.deliveries.flush()
    assert 0 < len(pushed(redis_server)) < 20
    queue.deliveries.close()


def test_requests_without_a_page_are_pushed_in_their_order(redis_server):
    queue = make_queue(redis_server)
    for n in range(3):
        queue.push(to(str(n)))
    until(lambda: pushed(redis_server) == ["0", "1", "2"], "the requests")
    queue.deliveries.close()


def test_pushes_are_kept_until_redis_takes_them(redis_server, caplog):
    caplog.set_level("INFO")
    put(redis_server, "page", "other")
    queue = make_queue(redis_server)
    page = page_with(queue, 3, dont_filter=True)
    queue.push(to("loose"))
    redis_server.stop()
    queue.spider.crawler.engine.finish(page)
    assert queue.pop() is None and len(queue) == 1, "the spider must not seem idle"
    assert "Redis is away; this spider pops nothing" in caplog.text
    redis_server.start()
    until(queue.deliveries.flush, "Redis to take it")
    assert pushed(redis_server) == ["loose", "0", "1", "2"]
    assert not held(redis_server)
    assert next_of(queue).url.endswith("/other")
    assert "Redis is back" in caplog.text
    queue.deliveries.close()


def test_a_temporary_error_loses_nothing(redis_server):
    put(redis_server, "page")
    queue = make_queue(redis_server)
    page = page_with(queue, 3, dont_filter=True)
    redis_server.client.config_set("maxmemory", 1)
    queue.spider.crawler.engine.finish(page)
    assert (len(held(redis_server)), pushed(redis_server)) == (1, [])
    redis_server.client.config_set("maxmemory", 0)
    until(queue.deliveries.flush, "Redis to take it")
    assert (held(redis_server), pushed(redis_server)) == ([], ["0", "1", "2"])
    queue.deliveries.close()


def test_a_spider_that_keeps_too_much_ends_and_its_pages_are_requeued(
    redis_server, monkeypatch, caplog
):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, why: closed.append(why))
    monkeypatch.setattr("urlseen.scrapy.deliveries.KEPT_BYTES", 1000)
    put(redis_server, "page")
    queue = make_queue(redis_server)
    page = page_with(queue, 20)
    redis_server.client.config_set("maxmemory", 1)
    queue.spider.crawler.engine.finish(page)
    assert closed == ["urlseen_away"]
    assert "were not acknowledged, and are fetched again" in caplog.text
    redis_server.client.config_set("maxmemory", 0)
    queue.deliveries.close()
    assert not held(redis_server) and not names(redis_server)
    assert pushed(redis_server) == []
    assert redis_server.client.llen("demo:unseen") == 1


def test_a_long_source_slows_a_spider_and_never_stops_it(redis_server, monkeypatch, caplog):
    monkeypatch.setattr("urlseen.scrapy.waits.SLOW_POP_S", 0.3)
    monkeypatch.setattr("urlseen.scrapy.waits.LOOK_S", 0.0)
    put(redis_server, *(str(n) for n in range(6)))
    redis_server.client.rpush("demo:discovered", *"abc")
    queue = make_queue(redis_server, {"URLSEEN_SOURCE_MAX": 2})
    engine = queue.spider.crawler.engine
    first = next_of(queue)
    assert "more than URLSEEN_SOURCE_MAX" in caplog.text
    assert queue.pop() is None
    engine.finish(first)
    # A daemon that waits for room in the sink can continue after these pops.
    next_of(queue)
    redis_server.client.lpop("demo:discovered")
    assert next_of(queue) and next_of(queue), "the spider is not slowed any more"
    assert len(held(redis_server)) == 3
    queue.deliveries.close()


def test_forgetting_uses_the_list_of_the_crawl(redis_server):
    put(redis_server, "page")
    queue = make_queue(redis_server)
    crawler, page = queue.spider.crawler, next_of(queue)
    moved = page.replace(meta={"redirect_urls": ["https://example.com/before"]})
    assert forget(moved, crawler)
    crawler.engine.finish(page)
    fingerprints = [
        crawler.request_fingerprinter.fingerprint(each).hex().encode()
        for each in (page, to("before"))
    ]
    assert redis_server.client.lrange("demo:forget", 0, -1) == fingerprints
    assert crawler.stats.get_value("urlseen/forgotten") == 2
    queue.deliveries.close()


def test_a_filter_that_cannot_forget_is_reported(redis_server, caplog):
    write_record(redis_server.client, forget="")
    queue = make_queue(redis_server, record=False)
    assert not forget(to("a"), queue.spider.crawler)
    assert "cannot forget" in caplog.text
    assert queue.spider.crawler.stats.get_value("urlseen/forget_failed") == 1
    queue.deliveries.close()


def test_producers_push_to_the_end_in_the_crawl_record(redis_server):
    write_record(redis_server.client, push="LPUSH", pop="RIGHT")
    put(redis_server, "last", "first")
    queue = make_queue(redis_server, record=False)
    page = page_with(queue, 2)
    assert page.url.endswith("/first")
    queue.spider.crawler.engine.finish(page)
    queue.push(to("loose"))
    queue.deliveries.close()
    assert pushed(redis_server) == ["loose", "1", "0"]
    assert not redis_server.client.exists(CONSUMERS)
