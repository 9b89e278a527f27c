"""Redirects that lead back to a page of their own chain, for example to set a cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.utils.request import RequestFingerprinterProtocol


def returns(request: Request, fingerprinter: RequestFingerprinterProtocol) -> bool:
    """Returns `True` if `request` was redirected from a request with the same fingerprint.

    The filter has seen this fingerprint, but its page was not fetched yet. Scrapy bounds the length
    of the chain with `REDIRECT_MAX_TIMES`.
    """
    before = request.meta.get("redirect_urls", ())
    if not before:
        return False
    mine = fingerprinter.fingerprint(request)
    return any(fingerprinter.fingerprint(request.replace(url=url)) == mine for url in before)
