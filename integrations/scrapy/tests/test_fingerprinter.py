"""The fingerprints of scrapy-redis."""

from __future__ import annotations

import pytest
from scrapy import FormRequest, Request
from scrapy_redis.dupefilter import RFPDupeFilter

from conftest import make_crawler
from urlseen_scrapy import DupeFilter, ScrapyRedisFingerprinter


@pytest.mark.parametrize(
    "request_",
    [
        Request("https://example.com/?b=1&a=2#top"),
        Request("https://exämple.com/ü?q=ü", method="post", body=b"\xff\x00"),
        Request("https://example.com/", method="ß"),
        FormRequest("https://example.com/", formdata={"a": "1"}),
        Request("https://example.com/", headers={"X": "1"}, meta={"verbatim_url": True}),
    ],
)
def test_a_fingerprint_is_the_same_as_in_scrapy_redis(request_):
    theirs = RFPDupeFilter(None, "key").request_fingerprint(request_)
    ours = ScrapyRedisFingerprinter()
    assert ours.fingerprint(request_).hex() == theirs
    assert ours.fingerprint(request_).hex() == theirs, "the second time, too"


def test_a_crawl_continues_with_a_set_of_scrapy_redis(redis_server):
    request = Request("https://example.com/?b=1&a=2")
    theirs = RFPDupeFilter(redis_server.client, "demo:dupefilter")
    assert not theirs.request_seen(request)
    settings = {
        "URLSEEN_URL": redis_server.url,
        "REQUEST_FINGERPRINTER_CLASS": "urlseen_scrapy.ScrapyRedisFingerprinter",
    }
    assert DupeFilter.from_crawler(make_crawler(settings)).request_seen(request)
