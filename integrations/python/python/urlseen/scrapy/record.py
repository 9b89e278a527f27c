"""Crawl record: the settings that the daemon writes to Redis for producers and consumers.

A record is a `dict` of its fields, with the names that they have in Redis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

from urlseen._urlseen import fingerprint
from urlseen.scrapy.fingerprinter import Fingerprinter, Options, fingerprinter_of

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
    follow(record, crawler)


def follow(record: dict[str, str], crawler: Crawler) -> None:
    """Makes the fingerprinter of a crawler compute the fingerprints of the crawl.

    `record` needs only the fields about fingerprints. Raises `ValueError` if the fingerprinter is
    another class, and computes other fingerprints.
    """
    settings, fingerprinter = crawler.settings, fingerprinter_of(crawler)
    options: Options = {
        "algorithm": record["algorithm"],
        "keep_fragments": record["keep_fragments"] == "true",
        "drop_tracking": record["drop_tracking"],
        "same": record["same"],
    }
    if isinstance(fingerprinter, Fingerprinter):
        fingerprinter.follow(options)
        return
    if settings.getbool("URLSEEN_OWN_FINGERPRINTER"):
        return
    for probe in PROBES:
        if fingerprinter.fingerprint(Request(probe)) == fingerprint(probe, **options):
            continue
        named = settings["REQUEST_FINGERPRINTER_CLASS"]
        name = named if isinstance(named, str) else load_object(named).__qualname__
        raise ValueError(
            f"REQUEST_FINGERPRINTER_CLASS is {name}. Its fingerprint of {probe} differs from that"
            f' of the crawl (fingerprint.algorithm = "{record["algorithm"]}",'
            f" fingerprint.keep_fragments = {record['keep_fragments']},"
            f' fingerprint.drop_tracking = "{record["drop_tracking"]}" and [[same]] ='
            f" {record['same']} in urlseen's config), so pages would be fetched again. Set REQUEST_FINGERPRINTER_CLASS ="
            ' "urlseen.scrapy.Fingerprinter". If the class is your own and the filter holds its'
            " fingerprints, set URLSEEN_OWN_FINGERPRINTER = True"
        )
