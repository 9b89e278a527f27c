"""Runs a spider through urlseen: trap_spider.py REDIS-URL LINKS CAP START

The spider follows all links in the order of their discovery, and writes each of them to the file
LINKS. It ends after CAP pages, or when no request is left.
"""

import sys

from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DontCloseSpider

from crawling.ways import URLSEEN, Partition

#: Seconds between two looks of an idle spider for new requests. Scrapy's default is 5.
HEARTBEAT_S = 0.2
#: Number of looks without a request after which the crawl is over.
LOOKS = 10

SETTINGS = {
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "INFO",
    "REQUEST_FINGERPRINTER_CLASS": "urlseen.scrapy.Fingerprinter",
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
}


class Traps(Spider):
    """Spider that follows every link."""

    name = "docs"

    def __init__(self, links, start):
        super().__init__()
        self.found = open(links, "w", encoding="utf-8")
        self.start_page = start
        self.looks = 0
        # Without priorities, requests would come in the order of the alphabet.
        self.priority = 0

    async def start(self):
        yield Request(self.start_page)

    def parse(self, response):
        self.looks = 0
        for href in response.css("a::attr(href)").getall():
            url = response.urljoin(href)
            self.found.write(f"{url}\n")
            self.priority -= 1
            yield Request(url, priority=self.priority)

    def idle(self):
        server = self.crawler.engine._slot.scheduler.server
        # An idle spider holds no request, and there is no other one.
        waiting = [server.exists(key) for key in Partition().queue[:-1]]
        self.looks = 0 if any(waiting) else self.looks + 1
        if self.looks < LOOKS:
            raise DontCloseSpider

    def closed(self, reason):
        self.found.close()


def main():
    redis, links, cap, start = sys.argv[1:]
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = HEARTBEAT_S
    settings = SETTINGS | URLSEEN.settings
    process = CrawlerProcess(settings | {"REDIS_URL": redis, "CLOSESPIDER_PAGECOUNT": int(cap)})
    crawler = process.create_crawler(Traps)
    crawler.signals.connect(lambda spider: spider.idle(), signals.spider_idle, weak=False)
    process.crawl(crawler, links=links, start=start)
    process.start()


if __name__ == "__main__":
    main()
