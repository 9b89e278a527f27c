"""Class for the setting `REQUEST_FINGERPRINTER_CLASS`: fingerprints of scrapy-redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urlseen import fingerprint

if TYPE_CHECKING:
    from scrapy import Request


class ScrapyRedisFingerprinter:
    """Computes the same fingerprints as the dupefilter of scrapy-redis 0.9.

    A crawl that began with scrapy-redis needs this class to recognise its seen requests:

        REQUEST_FINGERPRINTER_CLASS = "urlseen_scrapy.ScrapyRedisFingerprinter"

    All parts of Scrapy then use these fingerprints, for example the HTTP cache.
    """

    def fingerprint(self, request: Request) -> bytes:
        """Returns the fingerprint of a request: 20 bytes, the SHA-1 of method, URL and body."""
        return fingerprint(request.url, request.method, request.body, algorithm="scrapy-redis")
