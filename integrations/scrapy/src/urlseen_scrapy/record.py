"""Crawl record: the settings that the daemon writes to Redis for producers and consumers.

A record is a `dict` of its fields, with the names that they have in Redis.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger("urlseen_scrapy")

#: URL of the request whose fingerprint is the field `probe` of the record.
PROBE = "https://example.com/?b=2&a=1"
#: Values of `drop_tracking` and `same` in a crawl without rules.
NO_RULES = ("none", "[]")
#: For values of `fingerprint.algorithm`: the class that computes the same fingerprints.
FINGERPRINTERS = {
    "scrapy": "scrapy.utils.request.RequestFingerprinter",
    "scrapy-redis": "urlseen_scrapy.ScrapyRedisFingerprinter",
}


@dataclass(frozen=True)
class Fit:
    """Values that a component of this package needs in the crawl record."""

    component: str
    #: Required value of `sink.emit` in urlseen's config.
    emit: str
    #: Required value of `sink.kind` in urlseen's config.
    sink_kind: str
    sink: str
    #: Setting of the spider that names the sink.
    sink_setting: str


def follow_rules(
    fingerprinter: RequestFingerprinterProtocol, drop_tracking: str, same: str
) -> None:
    """Makes a fingerprinter apply the rules of the crawl.

    `drop_tracking` names a list of tracking parameters, and `same` has the rules as JSON. Raises
    `ValueError` if there are rules, and the fingerprinter cannot apply them.
    """
    follow = getattr(fingerprinter, "follow_rules", None)
    if follow is not None:
        follow(drop_tracking, same)
    elif (drop_tracking, same) != NO_RULES:
        raise ValueError(
            f"the crawl has rules for URLs that are the same (fingerprint.drop_tracking ="
            f' "{drop_tracking}", [[same]] = {same}), and {type(fingerprinter).__qualname__} cannot'
            " apply them. Install the package urlseen, and set"
            ' REQUEST_FINGERPRINTER_CLASS = "urlseen.scrapy.Fingerprinter"'
        )


def keys_of(record: dict[str, str]) -> dict[str, str]:
    """Returns the keys of the crawl, by their names in urlseen's config."""
    names = ("source", "sink", "rejects", "forget")
    return {f"{name}.key": record[name] for name in names if record[name]}


def check_record(record: dict[str, str], crawler: Crawler, fit: Fit, suffix: str) -> None:
    """Compares the settings of the spider with the daemon's config.

    `suffix` is the end of the keys of this record's partition. Raises `ValueError` for the first
    difference. The message names the setting and its remedy.
    """
    sink = record["sink"].removesuffix(suffix)
    for what, setting, ours, config, theirs in (
        ("kind", "SCHEDULER_QUEUE_CLASS", fit.sink_kind, "sink.kind", record["sink_kind"]),
        ("items", "SCHEDULER_QUEUE_CLASS", fit.emit, "sink.emit", record["emit"]),
        ("key", fit.sink_setting, fit.sink, "sink.key", sink),
    ):
        if ours != theirs:
            raise ValueError(_misfit(what, setting, ours, config, theirs, fit.component))
    _check_fingerprints(record, crawler)


def _check_fingerprints(record: dict[str, str], crawler: Crawler) -> None:
    settings, fingerprinter = crawler.settings, crawler.request_fingerprinter
    if fingerprinter is None:
        raise ValueError("the crawler has no request fingerprinter yet")
    follow_rules(fingerprinter, record["drop_tracking"], record["same"])
    if fingerprinter.fingerprint(Request(PROBE)).hex() == record["probe"]:
        return
    if settings.getbool("URLSEEN_OWN_FINGERPRINTER"):
        return
    named = settings["REQUEST_FINGERPRINTER_CLASS"]
    name = named if isinstance(named, str) else load_object(named).__qualname__
    fitting = FINGERPRINTERS.get(record["algorithm"])
    remedy = (
        f'Set REQUEST_FINGERPRINTER_CLASS = "{fitting}"'
        if fitting
        else ("Set REQUEST_FINGERPRINTER_CLASS to a class that computes them")
    )
    raise ValueError(
        f"REQUEST_FINGERPRINTER_CLASS is {name}. Its fingerprints differ from those of the"
        f' crawl (fingerprint.algorithm = "{record["algorithm"]}" in urlseen\'s config), so the'
        f" spider would fetch every page again. {remedy}. If the class is your own and the"
        " filter holds its fingerprints, set URLSEEN_OWN_FINGERPRINTER = True"
    )


def _misfit(what: str, setting: str, ours: str, config: str, theirs: str, component: str) -> str:
    if what == "kind":
        text = f'urlseen fills a {theirs} ({config} = "{theirs}"), and {component} needs a {ours}'
        remedy = (
            'PriorityQueue needs sink.kind = "zset" in urlseen\'s config, FifoQueue and'
            ' SendDiscovered need "list"'
        )
    elif what == "items":
        text = f'urlseen has {config} = "{theirs}", and {component} needs "{ours}"'
        remedy = (
            'PriorityQueue and FifoQueue need sink.emit = "item" in urlseen\'s config,'
            ' SendDiscovered needs "start-url"'
        )
    else:
        return (
            f"{setting}: {component} pops from {ours}, and urlseen pushes to {theirs}"
            f' ({config} = "{theirs}"). Set {setting} = "{theirs}"'
        )
    return f"{setting}: {text}. {remedy}"
