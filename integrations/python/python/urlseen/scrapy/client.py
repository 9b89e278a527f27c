"""Dupefilter that asks urlseen, and its client, which asks again after a broken connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, ref

from scrapy import signals
from scrapy.dupefilters import RFPDupeFilter

from urlseen._urlseen import Asker, Away, Refused
from urlseen.scrapy.engine import close_spider
from urlseen.scrapy.fingerprinter import fingerprinter_of, follow, returns
from urlseen.scrapy.settings import (
    address,
    check_names,
    check_no_rules,
    choice,
    key,
    logger,
    refusal,
    seconds,
    spider_name,
)
from urlseen.scrapy.waits import LONGEST_PAUSE_S, Patience

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

#: Values of `URLSEEN_WHEN_AWAY`.
WHEN_AWAY = ("wait", "fail", "pass")

_clients: WeakKeyDictionary[Crawler, Client] = WeakKeyDictionary()


def client_of(crawler: Crawler) -> Client:
    """Returns the client of the crawl. All components of a crawl share one client.

    Raises `ValueError` if a setting of the crawl is wrong.
    """
    client = _clients.get(crawler)
    if client is None:
        client = _clients[crawler] = Client(crawler)
        crawler.signals.connect(client.close, signals.engine_stopped)
    return client


class Client:
    """Asks urlseen about the requests of one crawl.

    If urlseen does not answer, the fingerprint counts as new. It is better to fetch a page twice
    than to lose it. For the same reason, an answer "seen" counts as new after a broken connection:
    urlseen may have added the fingerprint at the first question.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        check_names(settings)
        check_no_rules(settings)
        self.when_away = choice(settings, "URLSEEN_WHEN_AWAY", WHEN_AWAY)
        self.key = key(settings, "URLSEEN_KEY", "%(spider)s:dupefilter", spider_name(crawler))
        self.wait_s = seconds(settings, "URLSEEN_WAIT_S", 0, 0)
        # `_clients` keeps the client while the crawler lives. A plain reference from the client
        # would keep the crawler alive for ever.
        self._crawler = ref(crawler)
        self._asker = Asker(address(settings, "URLSEEN_ASK_URL"))
        url = urlsplit(settings["URLSEEN_ASK_URL"])
        self._whom = f"urlseen at {url.netloc.rpartition('@')[2] or url.path}"
        #: Time of the next attempt; 0 unless urlseen is away.
        self._next_try = 0.0
        self._is_ending = False

    def open(self) -> dict[str, str] | None:
        """Checks that urlseen answers and serves the key. Call this before the first question.

        Returns how the crawl computes fingerprints, in the fields of a crawl record. Returns `None`
        if urlseen is away, or if the server is another one.

        With `URLSEEN_WHEN_AWAY = "wait"` the method waits for urlseen, up to `URLSEEN_WAIT_S`
        seconds. With `"pass"` it logs a warning if urlseen is away. Raises `RuntimeError` if
        urlseen refuses the key, or is still away after the wait.
        """
        patience = Patience(self._whom, self.wait_s)
        with patience.interruptible():
            while True:
                try:
                    self._ask(b"SCARD")
                    info = self._asker.ask([b"INFO"]).decode()
                except Refused as refused:
                    raise RuntimeError(self._refusal(refused)) from None
                except Away as away:
                    if self.when_away == "pass":
                        logger.warning(
                            "%s is away; the spider starts without it: %s", self._whom, away
                        )
                        return None
                    if self.when_away == "fail" or not patience.pause(away):
                        raise RuntimeError(f"{self._whom} is away: {away}") from None
                else:
                    found = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
                    return found if "algorithm" in found else None

    def is_new(self, fingerprint: str) -> bool:
        """Adds a fingerprint (hex digits). Returns `True` if it was new, or may have been new.

        If urlseen does not answer, `URLSEEN_WHEN_AWAY` decides: the method waits, closes the
        spider, or returns `True` at once. It never raises an error of the connection.
        """
        if self._next_try and time.monotonic() < self._next_try:
            return self._pass()
        try:
            is_new = self._add(fingerprint)
        except Away as away:
            self.count("away")
            return self._ask_again(fingerprint, away)
        except Refused as refused:
            return self._end("urlseen_refused", self._refusal(refused))
        if self._next_try:
            self._is_back()
        return is_new

    def forget(self, fingerprint: str) -> bool:
        """Makes urlseen forget a fingerprint (hex digits), so that it counts as unseen.

        Returns `True` if urlseen has confirmed this. Otherwise logs a warning and returns `False`.
        """
        try:
            try:
                self._ask(b"SREM", fingerprint.encode())
            except Away:
                # urlseen may just have been restarted. A second removal does no harm.
                self._ask(b"SREM", fingerprint.encode())
        except (Away, Refused) as error:
            self.count("forget_failed")
            logger.warning("%s could not be told to forget %s: %s", self._whom, fingerprint, error)
            return False
        self.count("forgotten")
        return True

    def close(self) -> None:
        """Closes the connection to urlseen."""
        self._asker.close()

    def _ask(self, command: bytes, *words: bytes) -> Any:
        """Asks urlseen about the key. Takes one round trip."""
        return self._asker.ask([command, self.key.encode(), *words])

    def _add(self, fingerprint: str) -> bool:
        return bool(self._ask(b"SADD", fingerprint.encode()))

    def _ask_again(self, fingerprint: str, away: Away) -> bool:
        is_doubtful = away.sent
        patience = Patience(self._whom, self.wait_s)
        is_first = True
        with patience.interruptible():
            # The first retry follows at once, because urlseen may just have been restarted.
            while is_first or (
                self.when_away == "wait" and not self._is_ending and patience.pause(away)
            ):
                try:
                    is_new = self._add(fingerprint)
                except Away as still_away:
                    is_first = False
                    away = still_away
                    is_doubtful = is_doubtful or away.sent
                    continue
                except Refused as refused:
                    return self._end("urlseen_refused", self._refusal(refused))
                if self._next_try or not is_first:
                    self._is_back()
                if is_doubtful and not is_new:
                    self.count("doubtful")
                    return True
                return is_new
        was_away = self._next_try > 0
        self._next_try = time.monotonic() + LONGEST_PAUSE_S
        if self.when_away == "pass" or self._is_ending:
            if not was_away:
                logger.warning("%s is away; requests pass unchecked: %s", self._whom, away)
            return self._pass()
        if patience.is_told_to_stop:
            self._is_ending = True
            return self._pass()
        return self._end("urlseen_away", f"{self._whom} is away: {away}")

    def _end(self, reason: str, message: str) -> bool:
        """Closes the spider. Returns `True`, so that a persistent queue keeps the request."""
        self._next_try = time.monotonic() + LONGEST_PAUSE_S
        if not self._is_ending:
            self._is_ending = True
            logger.error("%s. The crawl ends.", message)
            crawler = self._crawler()
            if crawler is not None:
                close_spider(crawler, reason)
        return self._pass()

    def _pass(self) -> bool:
        self.count("passed")
        return True

    def _is_back(self) -> None:
        self._next_try = 0.0
        logger.info("%s is back", self._whom)

    def _refusal(self, refused: Refused) -> str:
        return f"{self._whom} refuses questions about the key {self.key}: {refused}"

    def count(self, what: str) -> None:
        """Adds 1 to a stat of the crawl: `urlseen/` and this word."""
        crawler = self._crawler()
        if crawler is not None and crawler.stats is not None:
            crawler.stats.inc_value(f"urlseen/{what}")


class DupeFilter(RFPDupeFilter):
    """Dupefilter that asks urlseen if a request is new, and adds it to urlseen's filter.

    It works with the scheduler of Scrapy and with that of scrapy-redis:

        DUPEFILTER_CLASS = "urlseen.scrapy.DupeFilter"
        URLSEEN_ASK_URL = "redis://127.0.0.1:6390"

    The scheduler waits for each answer, so the reactor is blocked for the time of a round trip.
    `URLSEEN_WHEN_AWAY` decides what happens if urlseen does not answer. `from_crawler` raises
    `ValueError` if a setting is wrong.
    """

    def __init__(
        self, crawler: Crawler, fingerprinter: RequestFingerprinterProtocol, debug: bool = False
    ) -> None:
        super().__init__(debug=debug, fingerprinter=fingerprinter)
        self._crawler = crawler
        self._client = client_of(crawler)
        self._fingerprinter = fingerprinter

    @classmethod
    @refusal()
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the filter for a crawler. Scrapy's scheduler calls this method."""
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        return cls(crawler, fingerprinter_of(crawler), debug)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Makes and opens the filter. The scheduler of scrapy-redis calls this method."""
        dupefilter = cls.from_crawler(spider.crawler)
        dupefilter.open()
        return dupefilter

    @refusal()
    def open(self) -> None:
        """Connects to urlseen.

        Raises `RuntimeError` if urlseen refuses the key. Also raises it if urlseen does not answer,
        unless `URLSEEN_WHEN_AWAY` is `"pass"`. Raises `ValueError` if the fingerprinter computes
        other fingerprints than the crawl has.
        """
        found = self._client.open()
        if found is not None:
            follow(found, self._crawler)

    def request_seen(self, request: Request) -> bool:
        """Returns `True` if the request has been seen. Adds it to the filter otherwise.

        A redirect back to a URL of its own chain always passes.
        """
        if returns(request, self._fingerprinter):
            self._client.count("returned")
            return False
        return not self._client.is_new(self._fingerprinter.fingerprint(request).hex())

    def close(self, reason: str) -> None:
        """Closes the connection. The filter keeps all requests."""
        self._client.close()

    def clear(self) -> None:
        """Logs that a spider cannot empty urlseen's filter. scrapy-redis calls this method."""
        logger.info(
            "urlseen keeps all seen requests: a spider does not empty its filter, and"
            " SCHEDULER_PERSIST and SCHEDULER_FLUSH_ON_START have no effect. To begin anew, stop"
            " the daemon and run: urlseen storage reset"
        )
