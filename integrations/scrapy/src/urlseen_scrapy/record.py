"""Crawl record, in which the daemon says how it runs the crawl."""

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

#: The only version of the record and the scripts that this package knows.
PROTOCOL = "1"
#: The request whose fingerprint the daemon writes into the record.
PROBE = "https://example.com/?b=2&a=1"
#: For each algorithm of the daemon: the class that computes its fingerprints.
FINGERPRINTERS = {
    "scrapy": "scrapy.utils.request.RequestFingerprinter",
    "scrapy-redis": "urlseen_scrapy.ScrapyRedisFingerprinter",
}


@dataclass(frozen=True)
class Fit:
    """Properties that a component needs of the crawl that it works for."""

    component: str
    #: `sink.emit` in urlseen's config.
    emit: str
    #: `sink.kind` in urlseen's config.
    sink_kind: str
    sink: str
    #: The setting that names the sink.
    sink_setting: str


@dataclass(frozen=True)
class Record:
    """Fields of the record, as the daemon writes them."""

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
        """Reads the record of the crawl of `source`. `None` if no daemon has written one.

        Raises `ValueError` for a record that this version cannot work with.
        """
        key = CrawlKeys.of_source(source).crawl
        flat = [part.decode() for part in wire.ask("HGETALL", key)]
        if not flat:
            return None
        found = dict(zip(flat[::2], flat[1::2]))
        if found.get("protocol") != PROTOCOL:
            raise ValueError(
                f"the crawl record {key} is of protocol {found.get('protocol')!r}, written by"
                f" urlseen {found.get('urlseen')}, and this urlseen_scrapy works with protocol"
                f" {PROTOCOL}. Install the urlseen_scrapy that belongs to that urlseen"
            )
        wanted = {field.name for field in fields(cls)}
        if missing := sorted(wanted - set(found)):
            raise ValueError(
                f"the crawl record {key} lacks {', '.join(missing)}. It was damaged, or another"
                " program writes it. Start the daemon again: it writes the record anew"
            )
        return cls(**{name: value for name, value in found.items() if name in wanted})

    @property
    def held_timeout_s(self) -> float:
        """Time that a consumer may stand still before its requests are requeued, in seconds."""
        return int(self.held_timeout_ms) / 1000

    def check(self, crawler: Crawler, fit: Fit) -> None:
        """Raises `ValueError` unless the spider's settings fit the daemon's config."""
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
            else ("Set REQUEST_FINGERPRINTER_CLASS to a class that computes these")
        )
        raise ValueError(
            f"REQUEST_FINGERPRINTER_CLASS is {name}, whose fingerprints are not those of the"
            f' crawl (fingerprint.algorithm = "{self.algorithm}" in urlseen\'s config). With it the'
            f" spider would fetch every page again. {remedy}. If the class is your own and the"
            " filter holds its fingerprints, set URLSEEN_OWN_FINGERPRINTER = True"
        )


def _misfit(what: str, setting: str, ours: str, config: str, theirs: str, component: str) -> str:
    if what == "kind":
        text = f'urlseen fills a {theirs} ({config} = "{theirs}"), and {component} needs a {ours}'
        remedy = (
            'PriorityQueue goes with sink.kind = "zset" in urlseen\'s config, FifoQueue and'
            ' SendDiscovered with "list"'
        )
    elif what == "items":
        text = f'urlseen emits {config} = "{theirs}", and {component} needs "{ours}"'
        remedy = (
            'PriorityQueue and FifoQueue go with sink.emit = "item" in urlseen\'s config,'
            ' SendDiscovered with "start-url"'
        )
    else:
        return (
            f"{setting}: {component} pops from {ours}, and urlseen pushes to {theirs}"
            f' ({config} = "{theirs}"). Set {setting} = "{theirs}"'
        )
    return f"{setting}: {text}. {remedy}"
