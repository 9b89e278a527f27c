"""The served protocol, with this package and with other clients."""

from __future__ import annotations

from collections import Counter

import redis
from scrapy import Request
from scrapy_redis.dupefilter import RFPDupeFilter

from conftest import make_crawler
from pages import PAGES
from servers import until
from urlseen_scrapy import DupeFilter, forget

REQUEST = Request("https://example.com/?b=1&a=2")


def test_a_request_is_seen_until_it_is_forgotten(seen_server):
    crawler = make_crawler({"URLSEEN_URL": seen_server.url})
    dupefilter = DupeFilter.from_crawler(crawler)
    dupefilter.open()
    assert not dupefilter.request_seen(REQUEST)
    assert dupefilter.request_seen(REQUEST)
    assert forget(REQUEST, crawler)
    assert not dupefilter.request_seen(REQUEST)
    assert dupefilter.request_seen(REQUEST)


def test_the_dupefilter_of_scrapy_redis_works_unchanged(seen_server):
    theirs = RFPDupeFilter(redis.Redis.from_url(seen_server.url), "demo:dupefilter")
    assert not theirs.request_seen(REQUEST)
    assert theirs.request_seen(REQUEST)
    settings = {
        "URLSEEN_URL": seen_server.url,
        "REQUEST_FINGERPRINTER_CLASS": "urlseen_scrapy.ScrapyRedisFingerprinter",
    }
    assert DupeFilter.from_crawler(make_crawler(settings)).request_seen(REQUEST)


def test_the_filter_commands_of_redis_py_work_unchanged(seen_server):
    filter_ = seen_server.client.bf()
    assert filter_.add("demo", "https://example.com/")
    assert not filter_.add("demo", "https://EXAMPLE.com/#top")
    assert filter_.madd("demo", "https://example.com/", "https://example.com/a") == [0, 1]
    assert filter_.exists("demo", "https://example.com/a")
    assert filter_.mexists("demo", "https://example.com/b", "https://example.com/a") == [0, 1]


def test_a_key_that_is_not_served_is_refused_by_name(seen_server, start_crawl, site):
    settings = {
        "DUPEFILTER_CLASS": "urlseen_scrapy.DupeFilter",
        "URLSEEN_URL": seen_server.url,
        "URLSEEN_KEY": "other:dupefilter",
    }
    crawl = start_crawl("Links", settings, url=site.url)
    crawl.end()
    assert "refuses questions about the key other:dupefilter" in crawl.log
    assert not site.hits


def test_no_page_is_lost_when_urlseen_is_killed(seen_server, site, start_crawl):
    settings = {"DUPEFILTER_CLASS": "urlseen_scrapy.DupeFilter", "URLSEEN_URL": seen_server.url}
    crawl = start_crawl("Links", settings, url=site.url)
    for fetched in (10, 40, 70):
        until(lambda fetched=fetched: len(site.page_hits()) >= fetched, f"{fetched} pages")
        seen_server.daemon.kill()
        seen_server.daemon.start()
    stats = crawl.wait()
    assert stats["finish_reason"] == "finished", crawl.log
    assert len(site.page_hits()) == PAGES
    twice = Counter(site.page_hits().values())[2]
    assert twice <= stats.get("urlseen/doubtful", 0)
    assert stats.get("urlseen/passed", 0) == 0
