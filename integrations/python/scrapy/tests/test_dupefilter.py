"""Whole crawls of ordinary projects. Only their settings name urlseen."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy import Request
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.request import fingerprint

from conftest import make_crawler
from pages import PAGES
from servers import Asked
from urlseen.scrapy import DupeFilter

EVERY_PAGE_ONCE = {f"/p/{n}": 1 for n in range(PAGES)}
DUPEFILTER = {"DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter"}


def scrapy_redis(url: str) -> dict[str, Any]:
    """Returns the settings of a project that uses scrapy-redis."""
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": url,
    }


def test_a_crawl_of_scrapy_moves_with_new_settings(seen_server, site, start_crawl, any_reactor):
    plain = start_crawl("Links", any_reactor, url=site.url).wait()
    assert site.page_hits() == EVERY_PAGE_ONCE

    site.hits.clear()
    settings = {**any_reactor, **DUPEFILTER, "URLSEEN_ASK_URL": seen_server.url}
    crawl = start_crawl("Links", settings, url=site.url)
    stats = crawl.wait()
    assert site.page_hits() == EVERY_PAGE_ONCE
    assert stats["finish_reason"] == "finished", crawl.log
    assert "ERROR" not in crawl.log
    for name in ("dupefilter/filtered", "item_scraped_count", "scheduler/enqueued"):
        assert stats[name] == plain[name], name

    # A second process starts later: its requests are all seen.
    site.hits.clear()
    assert start_crawl("Links", settings, url=site.url).wait()["finish_reason"] == "finished"
    assert site.page_hits() == {}


def test_a_fingerprinter_that_cannot_apply_the_rules_of_the_crawl_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text("[[same]]\nhost = 'a:b'\nfold = ['www']\n")
    server = Asked(tmp_path, "--set=fingerprint.drop_tracking=2026-11")
    try:
        settings = {**DUPEFILTER, "URLSEEN_ASK_URL": server.url}
        dupefilter = DupeFilter.from_crawler(make_crawler(settings))
        with pytest.raises(ValueError, match="REQUEST_FINGERPRINTER_CLASS is scrapy"):
            dupefilter.open()
        settings["REQUEST_FINGERPRINTER_CLASS"] = "urlseen.scrapy.Fingerprinter"
        crawler = make_crawler(settings)
        DupeFilter.from_crawler(crawler).open()
        options = crawler.request_fingerprinter.options
        assert options["drop_tracking"] == "2026-11"
        assert options["same"] == '[{"host":"a:b","fold":["www"]}]'
    finally:
        server.close()


def test_a_crawl_of_scrapy_redis_moves_with_new_settings(
    seen_server, redis_server, site, start_crawl, reactor
):
    settings = {**reactor, **scrapy_redis(redis_server.url)}
    plain = start_crawl("Links", settings, url=site.url).wait()
    assert site.page_hits() == EVERY_PAGE_ONCE

    settings = {**settings, **DUPEFILTER, "URLSEEN_ASK_URL": seen_server.url}
    for expected in (EVERY_PAGE_ONCE, {}):
        site.hits.clear()
        crawl = start_crawl("Links", settings, url=site.url)
        stats = crawl.wait()
        assert site.page_hits() == expected
        assert stats["finish_reason"] == "finished", crawl.log
        assert "ERROR" not in crawl.log
        # scrapy-redis empties its set here, except with SCHEDULER_PERSIST. urlseen's filter stays.
        assert "a spider does not empty its filter" in crawl.log
        if expected:
            assert stats["dupefilter/filtered"] > 0
            assert stats["scheduler/enqueued/redis"] == plain["scheduler/enqueued/redis"]


def test_the_question_has_the_fingerprint_of_the_spider(seen_server):
    crawler = make_crawler({"URLSEEN_ASK_URL": seen_server.url})
    dupefilter = DupeFilter.from_crawler(crawler)
    dupefilter.open()
    request = Request("https://example.com/?b=1&a=2", method="POST", body=b"x")
    assert not dupefilter.request_seen(request)
    assert dupefilter.request_seen(request.replace(url="https://example.com/?a=2&b=1"))
    assert not dupefilter.request_seen(request.replace(body=b"y"))
    key, fingerprints = "demo:dupefilter", fingerprint(request).hex()
    assert seen_server.client.sismember(key, fingerprints)
    dupefilter.close("finished")
    assert dupefilter.request_seen(request), "a question opens a new connection"
    dupefilter.close("finished")


@pytest.mark.parametrize("debug", [False, True])
def test_duplicates_are_logged_and_counted_as_in_scrapy(seen_server, caplog, debug):
    caplog.set_level(logging.DEBUG)
    crawler = make_crawler({"URLSEEN_ASK_URL": seen_server.url, "DUPEFILTER_DEBUG": debug})
    request = Request("https://example.com/", headers={"Referer": "https://example.com/r"})
    told = []
    for dupefilter in (DupeFilter.from_crawler(crawler), RFPDupeFilter.from_crawler(crawler)):
        caplog.clear()
        before = crawler.stats.get_value("dupefilter/filtered", 0)
        for _ in range(3):
            dupefilter.log(request, crawler.spider)
        told.append([record.getMessage() for record in caplog.records])
        assert crawler.stats.get_value("dupefilter/filtered") - before == 3
    assert told[0] == told[1]
    assert len(told[0]) == (3 if debug else 1)


def test_a_redirect_back_to_its_own_chain_passes(
    seen_server, redis_server, run_urlseen, site, start_crawl
):
    run_urlseen({})
    for settings in ({"URLSEEN_ASK_URL": seen_server.url}, {"URLSEEN_URL": redis_server.url}):
        site.hits.clear()
        settings["ADDONS"] = {"urlseen.scrapy.Addon": 500}
        crawl = start_crawl("Links", settings, url=f"{site.url}cookies")
        stats = crawl.wait()
        assert (site.hits["/cookie"], stats["urlseen/returned"]) == (2, 1), crawl.log
        assert stats["item_scraped_count"] == 2
