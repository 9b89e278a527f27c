"""Runs a spider of scripts/chaos --spiders: spider.py SETTINGS-AS-JSON URL

It prints that it has begun, and each page whose callback has come to its end.
"""

from __future__ import annotations

import json
import os
import sys
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import CrawlerProcess

SETTINGS = {
    "ADDONS": {"urlseen.scrapy.Addon": 500},
    "CONCURRENT_REQUESTS": 8,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "COOKIES_ENABLED": False,
    # No page is fetched again by Scrapy itself.
    "RETRY_ENABLED": False,
    # The URL of a held request is the only one in its bytes.
    "REFERER_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "INFO",
}


class Tree(Spider):
    """Spider that follows all links. A link of the class `again` is not filtered."""

    name = "demo"

    async def start(self):
        say("began")
        # This request is filtered, because all spiders begin with the same page.
        yield Request(self.url)

    def parse(self, response):
        for link in response.css("a"):
            is_unfiltered = link.attrib.get("class") == "again"
            # Many spiders copy the meta in this way.
            meta = {**response.meta}
            yield response.follow(link, meta=meta, dont_filter=is_unfiltered)
        say(f"finished {urlsplit(response.url).path}")


def say(line):
    """Prints a line. A pipe takes it as a whole, and keeps it if this process is killed."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def main():
    settings, url = sys.argv[1:]
    # Scrapy's default is 5 s: an idle spider looks for new requests after this time.
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.2
    process = CrawlerProcess(SETTINGS | json.loads(settings))
    process.crawl(Tree, url=url)
    process.start()


if __name__ == "__main__":
    main()
