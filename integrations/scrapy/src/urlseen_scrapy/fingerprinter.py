"""Class for the setting `REQUEST_FINGERPRINTER_CLASS`: fingerprints of scrapy-redis."""

from __future__ import annotations

import json
from hashlib import sha1
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from scrapy import Request


class ScrapyRedisFingerprinter:
    """Computes the same fingerprints as the dupefilter of scrapy-redis 0.9.

    A crawl that began with scrapy-redis needs this class to recognise its seen requests:

        REQUEST_FINGERPRINTER_CLASS = "urlseen_scrapy.ScrapyRedisFingerprinter"

    All parts of Scrapy then use these fingerprints, for example the HTTP cache.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()

    def fingerprint(self, request: Request) -> bytes:
        """Returns the fingerprint of a request: 20 bytes, the SHA-1 of method, URL and body."""
        known = self._known.get(request)
        if known is None:
            text = json.dumps(
                {
                    "method": request.method,
                    "url": canonicalize_url(request.url),
                    "body": request.body.hex(),
                },
                sort_keys=True,
            )
            known = self._known[request] = sha1(text.encode()).digest()
        return known
