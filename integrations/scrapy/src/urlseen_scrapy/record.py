"""Crawl record: the settings that the daemon writes to Redis for producers and consumers."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger("urlseen_scrapy")

#: Version of the record and of the scripts that this package supports.
PROTOCOL = "2"
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


def fields_of(key: str, answer: list[bytes]) -> dict[str, str]:
    """Returns the fields of the hash at `key`, which the daemon has written.

    `answer` is the answer to `HGETALL`. The result is empty if there is no hash. Raises
    `ValueError` if its protocol is not the one of this package.
    """
    flat = [part.decode() for part in answer]
    found = dict(zip(flat[::2], flat[1::2]))
    if found and found.get("protocol") != PROTOCOL:
        raise ValueError(
            f"the crawl record {key} has protocol {found.get('protocol')!r}, written by"
            f" urlseen {found.get('urlseen')}, and this urlseen_scrapy supports protocol"
            f" {PROTOCOL}. Install the urlseen_scrapy that belongs to that urlseen"
        )
    return found


def lacking(key: str, what: str) -> ValueError:
    """Returns the error for a hash at `key` that lacks `what`."""
    return ValueError(
        f"the crawl record {key} lacks {what}. It was damaged, or an earlier urlseen wrote it."
        " Restart the daemon, which writes the record again"
    )


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


@dataclass(frozen=True)
class Record:
    """Crawl record. The fields have the names that they have in Redis."""

    urlseen: str
    source: str
    push: str
    processing: str
    sink: str
    sink_kind: str
    pop: str
    emit: str
    algorithm: str
    drop_tracking: str
    same: str
    probe: str
    rejects: str
    forget: str
    deliveries: str
    held_timeout_ms: str
    partitions: str

    @classmethod
    def of_fields(cls, key: str, found: dict[str, str]) -> Record:
        """Makes the record of the hash at `key`. Raises `ValueError` if it lacks a field."""
        wanted = {field.name for field in fields(cls)}
        if missing := sorted(wanted - set(found)):
            raise lacking(key, ", ".join(missing))
        return cls(**{name: value for name, value in found.items() if name in wanted})

    @property
    def held_timeout_s(self) -> float:
        """Number of seconds without a heartbeat after which a consumer counts as stopped."""
        return int(self.held_timeout_ms) / 1000

    @property
    def suspect(self) -> int:
        """Lowest number of earlier deliveries of a suspect.

        It goes to the rejects if its consumer stops once more. So its consumer must hold no other
        request, whose page could be the cause.
        """
        return max(int(self.deliveries) - 1, 1)

    @property
    def keys(self) -> dict[str, str]:
        """Keys of the crawl, by their names in urlseen's config."""
        forget = {"forget.key": self.forget} if self.forget else {}
        return {
            "source.key": self.source,
            "sink.key": self.sink,
            "rejects.key": self.rejects,
            **forget,
        }

    def check(self, crawler: Crawler, fit: Fit, suffix: str) -> None:
        """Compares the settings of the spider with the daemon's config.

        `suffix` is the end of the keys of this record's partition. Raises `ValueError` for the
        first difference. The message names the setting and its remedy.
        """
        sink = self.sink.removesuffix(suffix)
        for what, setting, ours, config, theirs in (
            ("kind", "SCHEDULER_QUEUE_CLASS", fit.sink_kind, "sink.kind", self.sink_kind),
            ("items", "SCHEDULER_QUEUE_CLASS", fit.emit, "sink.emit", self.emit),
            ("key", fit.sink_setting, fit.sink, "sink.key", sink),
        ):
            if ours != theirs:
                raise ValueError(_misfit(what, setting, ours, config, theirs, fit.component))
        self._check_fingerprints(crawler)

    def _check_fingerprints(self, crawler: Crawler) -> None:
        settings, fingerprinter = crawler.settings, crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
        follow_rules(fingerprinter, self.drop_tracking, self.same)
        if fingerprinter.fingerprint(Request(PROBE)).hex() == self.probe:
            return
        if settings.getbool("URLSEEN_OWN_FINGERPRINTER"):
            return
        named = settings["REQUEST_FINGERPRINTER_CLASS"]
        name = named if isinstance(named, str) else load_object(named).__qualname__
        fitting = FINGERPRINTERS.get(self.algorithm)
        remedy = (
            f'Set REQUEST_FINGERPRINTER_CLASS = "{fitting}"'
            if fitting
            else ("Set REQUEST_FINGERPRINTER_CLASS to a class that computes them")
        )
        raise ValueError(
            f"REQUEST_FINGERPRINTER_CLASS is {name}. Its fingerprints differ from those of the"
            f' crawl (fingerprint.algorithm = "{self.algorithm}" in urlseen\'s config), so the'
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
