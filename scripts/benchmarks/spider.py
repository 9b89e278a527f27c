"""Runs one spider of a measured crawl: spider.py SETTINGS.json URL

It is an ordinary project, without code for urlseen. At the end it prints its numbers of pages and
links.
"""

import json
import sys
from pathlib import Path

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess


class Demo(Spider):
    """Spider that follows every link of a page."""

    name = "demo"
    pages = 0
    links = 0

    async def start(self):
        # The start page is filtered, because several spiders share a crawl.
        yield Request(self.url)

    def parse(self, response):
        self.pages += 1
        for link in response.css("a::attr(href)").getall():
            self.links += 1
            yield response.follow(link)

    def closed(self, _):
        print(self.pages, self.links)


if __name__ == "__main__":
    settings = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
    settings |= json.loads(Path(sys.argv[1]).read_text())
    process = CrawlerProcess({"CONCURRENT_REQUESTS_PER_DOMAIN": 16, **settings})
    process.crawl(Demo, url=sys.argv[2])
    process.start()
