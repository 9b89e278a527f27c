"""Runs one spider of a measured crawl: spider.py SETTINGS.json URL STATS.json

It is an ordinary project, without code for urlseen.
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

    def closed(self, reason):
        stats = {"pages": self.pages, "links": self.links, "reason": reason}
        Path(self.stats_file).write_text(json.dumps(stats))


def main():
    settings, url, stats = sys.argv[1:]
    process = CrawlerProcess(
        {
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            **json.loads(Path(settings).read_text()),
        }
    )
    process.crawl(Demo, url=url, stats_file=stats)
    process.start()


if __name__ == "__main__":
    main()
