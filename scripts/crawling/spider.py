"""Runs a spider: spider.py SETTINGS.json JOURNAL STAY SCOPE START…

The spider is the same for each way of deduplication. Only the settings differ.
"""

import json
import sys
from pathlib import Path

from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse
from scrapy.linkextractors.lxmlhtml import LxmlParserLinkExtractor
from scrapy.utils.misc import load_object

from crawling.journal import Page, Writer

#: Seconds between two looks of an idle spider for new requests. Scrapy's default is 5.
HEARTBEAT_S = 0.2

SETTINGS = {
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    # Every answer of the server is a page, with any status.
    "HTTPERROR_ALLOW_ALL": True,
    "REDIRECT_ENABLED": False,
    "LOG_LEVEL": "INFO",
}


class Docs(Spider):
    """Spider that follows every link within its scope."""

    name = "docs"
    # The parser of LinkExtractor, without its filter and its deduplication.
    extractor = LxmlParserLinkExtractor(tag=lambda tag: tag in ("a", "area"))

    def __init__(self, journal, stay, scope, start):
        super().__init__()
        self.journal = Writer(journal)
        self.stays = stay == "stay"
        self.scope = scope
        self.start_pages = start

    async def start(self):
        # Start pages are filtered, because several spiders start with the same pages.
        for url in self.start_pages:
            yield Request(url)

    def parse(self, response):
        page = Page(response)
        for url in self.links(response):
            if url.startswith(self.scope):
                request = Request(url)
                self.journal.found(request, page)
                yield request
        page.is_read = True
        self.journal.done_if_all(page)

    def links(self, response):
        if "Location" in response.headers:
            yield response.urljoin(response.headers["Location"].decode())
        if isinstance(response, HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield link.url

    def idle(self):
        self.journal.idle()
        if self.stays:
            raise DontCloseSpider("other spiders may find more links")


def noted(scheduler):
    """Wraps a scheduler, so that the journal notes each request that goes in or comes out."""

    class Noted(scheduler):
        def open(self, spider):
            self.journal = spider.journal
            return super().open(spider)

        def enqueue_request(self, request):
            self.journal.hands_on(request)
            is_queued = super().enqueue_request(request)
            self.journal.handed_on(request)
            return is_queued

        def next_request(self):
            self.journal.pops()
            request = super().next_request()
            self.journal.popped(request)
            return request

    return Noted


def main():
    settings, journal, stay, scope, *start = sys.argv[1:]
    settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler"} | json.loads(
        Path(settings).read_text()
    )
    settings["SCHEDULER"] = noted(load_object(settings["SCHEDULER"]))
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = HEARTBEAT_S
    process = CrawlerProcess(SETTINGS | settings)
    crawler = process.create_crawler(Docs)
    crawler.signals.connect(lambda spider: spider.idle(), signals.spider_idle, weak=False)
    process.crawl(crawler, journal=journal, stay=stay, scope=scope, start=start)
    process.start()


if __name__ == "__main__":
    main()
