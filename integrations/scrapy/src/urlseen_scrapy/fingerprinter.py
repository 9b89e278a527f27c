"""Class for the setting `REQUEST_FINGERPRINTER_CLASS`: fingerprints of scrapy-redis."""

from __future__ import annotations

import json
from hashlib import sha1
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from scrapy import Request

try:
    from urlseen import fingerprint as native
except ImportError:
    native = None


class ScrapyRedisFingerprinter:
    """Computes the same fingerprints as the dupefilter of scrapy-redis 0.9.

    A crawl that began with scrapy-redis needs this class to recognise its seen requests:

        REQUEST_FINGERPRINTER_CLASS = "urlseen_scrapy.ScrapyRedisFingerprinter"

    All parts of Scrapy then use these fingerprints, for example the HTTP cache. If the package
    `urlseen` is installed, it computes them in a fraction of the time.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()

    def fingerprint(self, request: Request) -> bytes:
        """Returns the fingerprint of a request: 20 bytes, the SHA-1 of method, URL and body."""
        if native is not None:
            made: bytes = native(
                request.url, request.method, request.body, algorithm="scrapy-redis"
            )
            return made
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
