"""Class for the setting `REQUEST_FINGERPRINTER_CLASS`, and uses of the crawl's fingerprinter."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.utils.misc import load_object

from urlseen import Options, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

#: URLs of requests whose fingerprints show the algorithm, the rules and the canonical form of a
#: class.
PROBES = (
    "https://example.com/?b=2&a=1&utm_source=x#part",
    "https://www.example.com/a/./b/../c?d=1;e=2",
    "http://[2001:DB8:0:0::1]/%3b",
    "https://example.com/?q=a+b%20c&q=",
)

ALGORITHMS = ("scrapy", "scrapy-2.6", "scrapy-redis")
CANONICAL_FORMS = ("w3lib-2.5", "w3lib-2.4")


class Fingerprinter:
    """Computes Scrapy's own fingerprints, in a fraction of the time.

        REQUEST_FINGERPRINTER_CLASS = "urlseen.scrapy.Fingerprinter"

    The setting `URLSEEN_FINGERPRINT_ALGORITHM` is `"scrapy"` (Scrapy 2.7 and later, the default),
    `"scrapy-2.6"` or `"scrapy-redis"`. `URLSEEN_FINGERPRINT_CANONICAL` is `"w3lib-2.5"` (the
    default), or `"w3lib-2.4"` for fingerprints of Scrapy with an earlier w3lib. A crawl must keep
    both.

    Rules can make different URLs the same. `URLSEEN_DROP_TRACKING = "2026-11"` ignores tracking
    parameters such as `utm_source`. `URLSEEN_SAME` is a list of rules, with the keys of `[[same]]`
    in urlseen's configuration:

        URLSEEN_SAME = [{"host": r"(^|\\.)example\\.com$", "drop_params": ["sid"], "fold": ["www"]}]

    In a crawl with urlseen's daemon, the daemon has the rules, and urlseen.scrapy passes them on.
    """

    def __init__(
        self,
        algorithm: str = "scrapy",
        drop_tracking: str = "none",
        same: Iterable[Mapping[str, object]] = (),
        canonical: str = "w3lib-2.5",
    ) -> None:
        self.follow(
            {
                "algorithm": algorithm,
                "canonical": canonical,
                "drop_tracking": drop_tracking,
                "same": json.dumps(list(same)),
            }
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the fingerprinter for a crawler.

        Raises `ValueError` if urlseen does not know the algorithm, or refuses a rule.
        """
        settings = crawler.settings
        return cls(
            settings.get("URLSEEN_FINGERPRINT_ALGORITHM") or "scrapy",
            settings.get("URLSEEN_DROP_TRACKING") or "none",
            settings.get("URLSEEN_SAME") or (),
            settings.get("URLSEEN_FINGERPRINT_CANONICAL") or "w3lib-2.5",
        )

    def follow(self, options: Options) -> None:
        """Computes later fingerprints with these options.

        Raises `ValueError` if urlseen refuses them.
        """
        fingerprint("http://a/", **options)
        #: Keyword arguments for `urlseen.fingerprint`.
        self.options = options

    def fingerprint(self, request: Request) -> bytes:
        """Returns the fingerprint of a request: 20 bytes."""
        return fingerprint(
            request.url,
            request.method,
            request.body,
            verbatim_url=bool(request.meta.get("verbatim_url")),
            **self.options,
        )


def fingerprinter_of(crawler: Crawler) -> RequestFingerprinterProtocol:
    """Returns the fingerprinter of a crawl. Raises `ValueError` if the crawler has none yet."""
    if crawler.request_fingerprinter is None:
        raise ValueError("the crawler has no request fingerprinter yet")
    return crawler.request_fingerprinter


def returns(request: Request, fingerprinter: RequestFingerprinterProtocol) -> bool:
    """Returns `True` if `request` was redirected from a request with the same fingerprint.

    A page may redirect back to itself, for example to set a cookie. The filter has seen this
    fingerprint, but its page was not fetched yet. Scrapy bounds the length of the chain with
    `REDIRECT_MAX_TIMES`.
    """
    before = request.meta.get("redirect_urls", ())
    if not before:
        return False
    mine = fingerprinter.fingerprint(request)
    return any(fingerprinter.fingerprint(request.replace(url=url)) == mine for url in before)


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
        "canonical": record["canonical"],
        "keep_fragments": record["keep_fragments"] == "true",
        "drop_tracking": record["drop_tracking"],
        "same": record["same"],
    }
    if isinstance(fingerprinter, Fingerprinter):
        fingerprinter.follow(options)
        return
    if settings.getbool("URLSEEN_OWN_FINGERPRINTER"):
        return
    made = {probe: fingerprinter.fingerprint(Request(probe)) for probe in PROBES}

    def wrong(tried: Options) -> list[str]:
        return [probe for probe in PROBES if fingerprint(probe, **tried) != made[probe]]

    if not (differing := wrong(options)):
        return
    named = settings["REQUEST_FINGERPRINTER_CLASS"]
    name = named if isinstance(named, str) else load_object(named).__qualname__
    text = (
        f"REQUEST_FINGERPRINTER_CLASS is {name}. Its fingerprint of {differing[0]} differs from that"
        f' of the crawl (fingerprint.algorithm = "{record["algorithm"]}", fingerprint.canonical ='
        f' "{record["canonical"]}", fingerprint.keep_fragments = {record["keep_fragments"]},'
        f' fingerprint.drop_tracking = "{record["drop_tracking"]}" and [[same]] ='
        f" {record['same']} in urlseen's config), so pages would be fetched again. Set"
        ' REQUEST_FINGERPRINTER_CLASS = "urlseen.scrapy.Fingerprinter".'
    )
    for algorithm, canonical in product(ALGORITHMS, CANONICAL_FORMS):
        if not wrong({**options, "algorithm": algorithm, "canonical": canonical}):
            text += (
                " If the filter holds the fingerprints of this class, set fingerprint.algorithm ="
                f' "{algorithm}" and fingerprint.canonical = "{canonical}" in urlseen\'s config'
            )
            break
    else:
        text += (
            " If the class is your own and the filter holds its fingerprints, set"
            " URLSEEN_OWN_FINGERPRINTER = True"
        )
    raise ValueError(text)
