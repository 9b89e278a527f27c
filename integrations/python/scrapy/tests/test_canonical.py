"""Crawls with Scrapy's own fingerprints of URLs that two versions of w3lib make canonical differently.

Another producer pushes the same URLs, without fingerprints.
"""

from __future__ import annotations

import pytest

import urlseen
from pages import Site
from servers import FORM, FORMS

#: Ends of URLs of the site, of different pages. Their canonical forms differ between the versions of
#: w3lib.
ENDS = [
    "/git/?p=x.git;a=blob",
    "/git/?p=x.git;a=tree",
    "/dots/./a",
    "/dots/b/../c",
    "/escaped%3Ba",
    "/escaped%25b",
    "/escaped%2525c",
    "/back\\slash",
    "/matrix;a=1?b=2;c=3",
    "/all/./%3B/../d?a=1;b=2",
]
#: URL of another host, where nothing listens.
ELSEWHERE = "http://[0:0::1]:1/"
SETTINGS = {
    "ADDONS": {"urlseen.scrapy.Addon": 500},
    "REQUEST_FINGERPRINTER_CLASS": "scrapy.utils.request.RequestFingerprinter",
    "RETRY_ENABLED": False,
    "CLOSESPIDER_TIMEOUT": 60,
}


class OddSite(Site):
    """Site of one page with links, which differ from each other only in what w3lib changes."""

    def links(self) -> list[str]:
        return [*(self.url + end[1:] for end in ENDS), ELSEWHERE]

    def _answer(self, path: str) -> tuple[int, list[str]]:
        return 200, self.links() if path == "/" else []


@pytest.fixture
def odd_site():
    site = OddSite()
    yield site
    site.close()


def test_urls_of_the_spider_and_of_another_producer_are_fetched_once(
    redis_server, odd_site, run_urlseen, start_crawl
):
    links = odd_site.links()
    for link in links:
        assert len({urlseen.canonicalize(link, canonical=form) for form in FORMS}) == 2, link
    run_urlseen({})
    settings = {**SETTINGS, "URLSEEN_URL": redis_server.url}
    redis_server.client.rpush("demo:discovered", *links[::2])
    crawl = start_crawl("Links", settings, url=odd_site.url)
    stats = crawl.wait()
    assert stats["finish_reason"] == "finished", crawl.log
    assert stats["downloader/request_count"] == 1 + len(links), odd_site.hits
    redis_server.client.rpush("demo:discovered", *links)
    again = start_crawl("Links", settings, url=odd_site.url).wait()
    assert again["downloader/request_count"] == 1, odd_site.hits


def test_the_other_form_is_refused(redis_server, odd_site, run_urlseen, start_crawl):
    other = next(form for form in FORMS if form != FORM)
    run_urlseen({"fingerprint.canonical": other})
    crawl = start_crawl("Links", {**SETTINGS, "URLSEEN_URL": redis_server.url}, url=odd_site.url)
    crawl.end()
    assert f'fingerprint.canonical = "{FORM}"' in crawl.log
    assert not odd_site.hits
