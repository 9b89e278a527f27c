"""Crawl record: the settings that the daemon writes to Redis for producers and consumers.

A record is a `dict` of its fields, with the names that they have in Redis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

from urlseen._urlseen import fingerprint
from urlseen.scrapy.fingerprinter import Fingerprinter, fingerprinter_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: URLs of requests whose fingerprints show the algorithm, the rules and the canonical form of a
#: class.
PROBES = (
    "https://example.com/?b=2&a=1&utm_source=x#part",
    "https://www.example.com/a/./b/../c?d=1;e=2",
    "http://[2001:DB8:0:0::1]/%3b",
    "https://example.com/?q=a+b%20c&q=",
)


def check_record(record: dict[str, str], crawler: Crawler) -> None:
    """Compares the settings of the spider with the daemon's config.

    Raises `ValueError` for the first difference. The message names the setting and its remedy.
    """
    if record["emit"] != "item":
        raise ValueError(
            f'urlseen has sink.emit = "{record["emit"]}", and the scheduler needs whole requests.'
            ' Set sink.emit = "item" in urlseen\'s config'
        )
    follow(crawler, record["algorithm"], record["drop_tracking"], record["same"])


def follow(crawler: Crawler, algorithm: str, drop_tracking: str, same: str) -> None:
    """Makes the fingerprinter of a crawler compute the fingerprints of the crawl.

    `drop_tracking` names a list of tracking parameters, and `same` has the rules as JSON. Raises
    `ValueError` if the fingerprinter is another class, and computes other fingerprints.
    """
    settings, fingerprinter = crawler.settings, fingerprinter_of(crawler)
    if isinstance(fingerprinter, Fingerprinter):
        fingerprinter.follow(algorithm, drop_tracking, same)
        return
    if settings.getbool("URLSEEN_OWN_FINGERPRINTER"):
        return
    for probe in PROBES:
        right = fingerprint(probe, algorithm=algorithm, drop_tracking=drop_tracking, same=same)
        if fingerprinter.fingerprint(Request(probe)) == right:
            continue
        named = settings["REQUEST_FINGERPRINTER_CLASS"]
        name = named if isinstance(named, str) else load_object(named).__qualname__
        raise ValueError(
            f"REQUEST_FINGERPRINTER_CLASS is {name}. Its fingerprint of {probe} differs from that"
            f' of the crawl (fingerprint.algorithm = "{algorithm}", fingerprint.drop_tracking ='
            f' "{drop_tracking}" and [[same]] = {same} in urlseen\'s config), so pages would be'
            " fetched again. Set REQUEST_FINGERPRINTER_CLASS ="
            ' "urlseen.scrapy.Fingerprinter". If the class is your own and the filter holds its'
            " fingerprints, set URLSEEN_OWN_FINGERPRINTER = True"
        )
