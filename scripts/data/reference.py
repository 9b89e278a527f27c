"""Fingerprints and canonical URLs of the installed Scrapy, w3lib and scrapy-redis."""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import IPv6Address

from scrapy import Request
from scrapy.utils.request import fingerprint
from scrapy_redis.dupefilter import RFPDupeFilter
from w3lib.url import canonicalize_url

#: Canonical form that the installed w3lib makes.
FORM = "w3lib-2.4" if version("w3lib") == "2.4.1" else "w3lib-2.5"
ALGORITHMS = ("scrapy", "scrapy-2.6", "scrapy-redis")
REDIS_FILTER = RFPDupeFilter(server=None, key="")

_UNMAPPED = IPv6Address.__str__


def _with_dots(address):
    """Writes an address as CPython 3.13 does: one that is IPv4-mapped has dots."""
    zone = f"%{address.scope_id}" if address.scope_id else ""
    mapped = address.ipv4_mapped
    return _UNMAPPED(address) if mapped is None else f"::ffff:{mapped}{zone}"


IPv6Address.__str__ = _with_dots


def versions():
    """Returns the names and versions of the packages."""
    return ", ".join(f"{name} {version(name)}" for name in ("Scrapy", "w3lib", "scrapy-redis"))


@dataclass(frozen=True)
class Case:
    """Request with the options of its fingerprint."""

    url: str
    method: str = "GET"
    body: bytes = b""
    verbatim_url: bool = False
    keep_fragments: bool = False

    def request(self):
        """Makes the Scrapy request. Raises an error if Scrapy refuses it."""
        meta = {"verbatim_url": True} if self.verbatim_url else None
        kind = Verbatim if self.verbatim_url and FORM == "w3lib-2.4" else Request
        return kind(self.url, method=self.method, body=self.body, meta=meta)


class Verbatim(Request):
    """Request of a Scrapy without `verbatim_url`, with the URL that later ones give it."""

    def _set_url(self, url):
        self._url = url
        if "://" not in url and not url.startswith(("about:", "data:")):
            raise ValueError(f"Missing scheme in request url: {url}")


def answer(case, algorithm):
    """Returns fingerprint (hex) and canonical URL, or `None` for both if Python raises an error."""
    try:
        request = case.request()
        if algorithm == "scrapy" and case.verbatim_url:
            url = request.url
        else:
            url = canonicalize_url(request.url, keep_fragments=case.keep_fragments)
        return HASHES[algorithm](case, request, url), url
    except Exception:  # noqa: BLE001
        return None, None


def scrapy(case, request, _url):
    if not isinstance(request, Verbatim):
        return fingerprint(request, keep_fragments=case.keep_fragments).hex()
    text = {"body": request.body.hex(), "headers": {}, "method": request.method, "url": request.url}
    return hashlib.sha1(json.dumps(text, sort_keys=True).encode()).hexdigest()


def scrapy_2_6(_case, request, url):
    """Computes `request_fingerprint` of Scrapy 2.6, which later versions of Scrapy lack."""
    return hashlib.sha1(request.method.encode() + url.encode() + request.body).hexdigest()


def scrapy_redis(case, request, url):
    """Computes scrapy-redis's fingerprint, also with urlseen's option to keep fragments."""
    if not case.keep_fragments:
        return REDIS_FILTER.request_fingerprint(request)
    text = {"method": request.method, "url": url, "body": request.body.hex()}
    return hashlib.sha1(json.dumps(text, sort_keys=True).encode()).hexdigest()


HASHES = dict(zip(ALGORITHMS, (scrapy, scrapy_2_6, scrapy_redis), strict=True))
