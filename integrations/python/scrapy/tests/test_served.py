"""The served protocol, with this package and with other clients."""

from __future__ import annotations

from collections import Counter

from scrapy import Request

from conftest import make_crawler
from pages import PAGES
from servers import until
from urlseen.scrapy import DupeFilter, forget

REQUEST = Request("https://example.com/?b=1&a=2")


def test_a_request_is_seen_until_it_is_forgotten(seen_server):
    crawler = make_crawler({"URLSEEN_ASK_URL": seen_server.url})
    dupefilter = DupeFilter.from_crawler(crawler)
    dupefilter.open()
    assert not dupefilter.request_seen(REQUEST)
    assert dupefilter.request_seen(REQUEST)
    assert forget(REQUEST, crawler)
    assert not dupefilter.request_seen(REQUEST)
    assert dupefilter.request_seen(REQUEST)


def test_no_page_is_lost_when_urlseen_is_killed(seen_server, site, start_crawl):
    settings = {"DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter", "URLSEEN_ASK_URL": seen_server.url}
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
