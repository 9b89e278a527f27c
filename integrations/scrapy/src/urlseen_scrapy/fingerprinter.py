"""Fingerprints for crawls that began with scrapy-redis."""

from __future__ import annotations

import json
from hashlib import sha1
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from scrapy import Request


class ScrapyRedisFingerprinter:
    """Computes the fingerprints of the dupefilter of scrapy-redis 0.9.

    For `REQUEST_FINGERPRINTER_CLASS`. All users of fingerprints get them, as Scrapy's HTTP cache.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()

    def fingerprint(self, request: Request) -> bytes:
        """Returns the 20 bytes that identify the request."""
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
