"""Crawl record: the settings that the daemon writes to Redis for producers and consumers."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

from urlseen_scrapy.keys import CrawlKeys

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from urlseen_scrapy.wire import Wire

logger = logging.getLogger("urlseen_scrapy")

#: Version of the record and of the scripts that this package supports.
PROTOCOL = "1"
#: URL of the request whose fingerprint is the field `probe` of the record.
PROBE = "https://example.com/?b=2&a=1"
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
    probe: str
    rejects: str
    forget: str
    deliveries: str
    held_timeout_ms: str

    @classmethod
    def read(cls, wire: Wire, source: str) -> Record | None:
        """Reads the record of the crawl that reads `source`.

        Returns `None` if no daemon has run for this source. Raises `ValueError` if the record has
        another protocol or lacks a field. Raises `Away` or `Refused` if Redis does not answer or
        refuses the command.
        """
        key = CrawlKeys.of_source(source).crawl
        flat = [part.decode() for part in wire.ask("HGETALL", key)]
        if not flat:
            return None
        found = dict(zip(flat[::2], flat[1::2]))
        if found.get("protocol") != PROTOCOL:
            raise ValueError(
                f"the crawl record {key} has protocol {found.get('protocol')!r}, written by"
                f" urlseen {found.get('urlseen')}, and this urlseen_scrapy supports protocol"
                f" {PROTOCOL}. Install the urlseen_scrapy that belongs to that urlseen"
            )
        if "tags" in found:
            raise ValueError(
                f"the crawl of {source} has {found.get('partitions')} partitions, and this"
                " urlseen_scrapy supports only crawls with one. Set partitions.count = 1 in"
                " urlseen's config"
            )
        wanted = {field.name for field in fields(cls)}
        if missing := sorted(wanted - set(found)):
            raise ValueError(
                f"the crawl record {key} lacks {', '.join(missing)}. It was damaged, or another"
                " program changed it. Restart the daemon, which writes the record again"
            )
        return cls(**{name: value for name, value in found.items() if name in wanted})

    @property
    def held_timeout_s(self) -> float:
        """Number of seconds without a heartbeat after which a consumer counts as stopped."""
        return int(self.held_timeout_ms) / 1000

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

    def check(self, crawler: Crawler, fit: Fit) -> None:
        """Compares the settings of the spider with the daemon's config.

        Raises `ValueError` for the first difference. The message names the setting and its remedy.
        """
        for what, setting, ours, config, theirs in (
            ("kind", "SCHEDULER_QUEUE_CLASS", fit.sink_kind, "sink.kind", self.sink_kind),
            ("items", "SCHEDULER_QUEUE_CLASS", fit.emit, "sink.emit", self.emit),
            ("key", fit.sink_setting, fit.sink, "sink.key", self.sink),
        ):
            if ours != theirs:
                raise ValueError(_misfit(what, setting, ours, config, theirs, fit.component))
        self._check_fingerprints(crawler)

    def _check_fingerprints(self, crawler: Crawler) -> None:
        settings, fingerprinter = crawler.settings, crawler.request_fingerprinter
        if fingerprinter is None:
            raise ValueError("the crawler has no request fingerprinter yet")
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
