"""The middleware `ForgetFailed`: failed requests pass again."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured

from conftest import make_crawler
from pages import PAGES
from urlseen.scrapy import DupeFilter, ForgetFailed, forget


def test_failed_pages_are_fetched_by_the_next_crawl(redis_server, site, start_crawl):
    settings = {
        "DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter",
        "URLSEEN_ASK_URL": redis_server.url,
        "DOWNLOADER_MIDDLEWARES": {"urlseen.scrapy.ForgetFailed": 50},
        "RETRY_TIMES": 1,
    }
    site.is_broken = True
    first = start_crawl("Links", settings, url=site.url).wait()
    # urlseen forgets the failed page, and the page that was redirected to it.
    assert first.get("urlseen/forgotten", 0) == 2
    assert (site.hits["/moved"], site.hits["/broken"]) == (1, 2)
    assert sum(site.page_hits().values()) == PAGES
    site.is_broken = False
    second = start_crawl("Links", settings, url=site.url).wait()
    assert second.get("urlseen/forgotten", 0) == 0
    assert (site.hits["/moved"], site.hits["/broken"]) == (2, 3)
    assert sum(site.page_hits().values()) == PAGES


def test_the_middleware_can_be_switched_off():
    with pytest.raises(NotConfigured):
        ForgetFailed.from_crawler(make_crawler({"URLSEEN_FORGET_FAILED": False}))


def test_only_failures_are_forgotten(redis_server):
    crawler = make_crawler({"URLSEEN_ASK_URL": redis_server.url})
    dupefilter = DupeFilter.from_crawler(crawler)
    middleware = ForgetFailed.from_crawler(crawler)
    request = Request("https://example.com/")
    assert not dupefilter.request_seen(request)
    middleware.process_exception(request, IgnoreRequest("robots.txt"))
    assert dupefilter.request_seen(request)
    middleware.process_exception(request, OSError("no route to host"))
    assert not dupefilter.request_seen(request)
    assert forget(request, crawler)
    assert not dupefilter.request_seen(request)
