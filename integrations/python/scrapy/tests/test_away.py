"""Behaviour of spiders while urlseen does not answer."""

from __future__ import annotations

import gc
import logging
import os
import signal
import weakref
from collections.abc import Callable

import pytest
from scrapy import Request

from conftest import make_crawler
from pages import PAGES
from servers import RedisServer, free_port, until
from urlseen.scrapy import DupeFilter, forget

NEW = Request("https://example.com/new")
OTHER = Request("https://example.com/other")


class WhenLogged(logging.Handler):
    """Calls a function when a message is logged.

    While a spider waits for urlseen, a test can run code only in this way.
    """

    def __init__(self, text: str, action: Callable[[], object]) -> None:
        super().__init__()
        self._text = text
        self._action = action

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self._action()


@pytest.fixture
def when_logged():
    logger, handlers = logging.getLogger("urlseen.scrapy"), []

    def add(text: str, action: Callable[[], object]) -> None:
        handlers.append(WhenLogged(text, action))
        logger.addHandler(handlers[-1])

    yield add
    for handler in handlers:
        logger.removeHandler(handler)


def asked(server: RedisServer, **settings: object) -> tuple[DupeFilter, Callable[[str], int]]:
    """Makes a dupefilter, and a function that reads its counters."""
    crawler = make_crawler({"URLSEEN_ASK_URL": server.url, **settings})
    dupefilter = DupeFilter.from_crawler(crawler)
    return dupefilter, lambda name: crawler.stats.get_value(f"urlseen/{name}", 0)


def test_a_finished_crawler_is_not_kept_alive(redis_server):
    def is_kept(is_asked: bool) -> bool:
        crawler = make_crawler({"URLSEEN_ASK_URL": redis_server.url})
        if is_asked:
            DupeFilter.from_crawler(crawler).open()
        gone = weakref.ref(crawler)
        del crawler
        gc.collect()
        return gone() is not None

    # Some versions of Scrapy keep the crawler alive themselves.
    assert is_kept(True) == is_kept(False)


def test_a_short_restart_has_no_effect(redis_server):
    dupefilter, count = asked(redis_server, URLSEEN_WHEN_AWAY="fail")
    assert not dupefilter.request_seen(NEW)
    redis_server.stop()
    redis_server.start()
    assert not dupefilter.request_seen(OTHER)
    assert dupefilter.request_seen(OTHER) and dupefilter.request_seen(NEW)
    assert (count("away"), count("doubtful"), count("passed")) == (1, 0, 0)


def test_the_wait_ends_when_urlseen_is_back(redis_server, when_logged, caplog):
    caplog.set_level(logging.INFO)
    dupefilter, count = asked(redis_server, URLSEEN_WHEN_AWAY="wait")
    assert not dupefilter.request_seen(NEW)
    redis_server.stop()
    when_logged("Waiting for", redis_server.start)
    assert not dupefilter.request_seen(OTHER)
    assert dupefilter.request_seen(NEW)
    assert f"Waiting for urlseen at 127.0.0.1:{redis_server.port}" in caplog.text
    assert "is back" in caplog.text
    assert (count("away"), count("passed")) == (1, 0)


def test_the_wait_ends_after_its_time_limit(redis_server, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.client.close_spider", lambda _, why: closed.append(why))
    dupefilter, count = asked(redis_server, URLSEEN_WAIT_S=0.2)
    redis_server.stop()
    assert not dupefilter.request_seen(NEW), "the request goes into the queue"
    assert not dupefilter.request_seen(NEW)
    assert closed == ["urlseen_away"], "the spider is closed once"
    assert count("passed") == 2


def test_a_signal_ends_the_wait_and_runs_its_earlier_handler(redis_server, when_logged):
    heard = []

    def handler(number, _):
        heard.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        dupefilter, count = asked(redis_server)
        redis_server.stop()
        when_logged("Waiting for", lambda: os.kill(os.getpid(), signal.SIGTERM))
        assert not dupefilter.request_seen(NEW)
        assert heard == [signal.SIGTERM]
        assert not dupefilter.request_seen(OTHER), "no later request waits"
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM] * 2
        assert signal.getsignal(signal.SIGTERM) is handler, "the earlier handler is set again"
        assert count("passed") == 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_with_pass_requests_are_counted_and_urlseen_is_asked_again_later(
    redis_server, monkeypatch, caplog
):
    monkeypatch.setattr("urlseen.scrapy.client.LONGEST_PAUSE_S", 0.0)
    dupefilter, count = asked(redis_server, URLSEEN_WHEN_AWAY="pass")
    dupefilter.open()
    assert not dupefilter.request_seen(NEW)
    redis_server.stop()
    dupefilter.open()
    assert not dupefilter.request_seen(NEW)
    assert not dupefilter.request_seen(OTHER)
    assert count("passed") == 2
    assert caplog.text.count("requests pass unchecked") == 1
    redis_server.start()
    assert dupefilter.request_seen(NEW)
    assert not dupefilter.request_seen(OTHER)
    assert count("passed") == 2


def test_with_pass_not_every_request_tries_to_connect(redis_server, caplog):
    dupefilter, count = asked(redis_server, URLSEEN_WHEN_AWAY="pass")
    redis_server.stop()
    for n in range(100):
        assert not dupefilter.request_seen(Request(f"https://example.com/{n}"))
    assert count("passed") == 100
    assert count("away") < 50
    assert caplog.text.count("requests pass unchecked") == 1


def test_a_lost_answer_loses_no_request(redis_server, proxy):
    dupefilter, count = asked(redis_server, URLSEEN_ASK_URL=f"redis://127.0.0.1:{proxy.port}")
    proxy.to_lose = 1
    # The server added the request before the answer was lost, so the second answer is "seen".
    assert not dupefilter.request_seen(NEW)
    assert redis_server.client.scard("demo:dupefilter") == 1
    assert (count("doubtful"), count("away")) == (1, 1)
    assert dupefilter.request_seen(NEW)
    proxy.to_lose = 3
    assert not dupefilter.request_seen(OTHER)
    assert count("doubtful") == 2


def test_an_answer_lost_in_the_middle_of_a_wait_loses_no_request(redis_server, proxy, when_logged):
    dupefilter, count = asked(redis_server, URLSEEN_ASK_URL=f"redis://127.0.0.1:{proxy.port}")
    # After this temporary error, the server has not added the request.
    redis_server.client.config_set("min-replicas-to-write", 1)

    def mend() -> None:
        redis_server.client.config_set("min-replicas-to-write", 0)
        proxy.to_lose = 1

    when_logged("NOREPLICAS", mend)
    assert not dupefilter.request_seen(NEW)
    assert (count("doubtful"), count("away")) == (1, 1)


def test_an_answer_of_a_stopping_urlseen_is_doubtful(redis_server, proxy):
    dupefilter, count = asked(redis_server, URLSEEN_ASK_URL=f"redis://127.0.0.1:{proxy.port}")
    proxy.to_lose = 1
    proxy.instead = b"-LOADING urlseen is ending, and the result of this command is unknown\r\n"
    assert not dupefilter.request_seen(NEW)
    assert (count("doubtful"), count("away")) == (1, 1)


def test_an_answer_after_a_temporary_error_is_not_doubtful(redis_server, when_logged):
    dupefilter, count = asked(redis_server)
    assert not dupefilter.request_seen(NEW)
    redis_server.client.config_set("min-replicas-to-write", 1)
    when_logged("NOREPLICAS", lambda: redis_server.client.config_set("min-replicas-to-write", 0))
    assert dupefilter.request_seen(NEW)
    assert (count("doubtful"), count("away")) == (0, 1)


def test_an_answer_after_the_timeout_does_not_count(redis_server):
    dupefilter, count = asked(redis_server, URLSEEN_TIMEOUT_S=0.2, URLSEEN_WHEN_AWAY="pass")
    dupefilter.open()
    with redis_server.frozen():
        assert not dupefilter.request_seen(NEW)
    assert (count("away"), count("passed")) == (1, 1)


def test_forgetting_does_not_wait(redis_server):
    crawler = make_crawler({"URLSEEN_ASK_URL": redis_server.url})
    dupefilter = DupeFilter.from_crawler(crawler)
    assert not dupefilter.request_seen(NEW)
    redis_server.stop()
    assert not forget(NEW, crawler)
    assert crawler.stats.get_value("urlseen/forget_failed") == 1
    redis_server.start()
    assert forget(NEW, crawler)
    assert not dupefilter.request_seen(NEW)
    # The connection is broken, but the client has not noticed this yet.
    redis_server.stop()
    redis_server.start()
    assert forget(NEW, crawler)
    assert not dupefilter.request_seen(NEW)


def test_a_missing_server_at_the_start(tmp_path):
    url = f"redis://127.0.0.1:{free_port()}"
    for settings in ({"URLSEEN_WHEN_AWAY": "fail"}, {"URLSEEN_WAIT_S": 0.1}):
        crawler = make_crawler({"URLSEEN_ASK_URL": url, **settings})
        with pytest.raises(RuntimeError, match="urlseen at 127.0.0.1:[0-9]* is away"):
            DupeFilter.from_crawler(crawler).open()
        # The scheduler of scrapy-redis does not open the dupefilter.
        with pytest.raises(RuntimeError, match="urlseen at 127.0.0.1:[0-9]* is away"):
            DupeFilter.from_spider(crawler.spider)


@pytest.mark.parametrize(
    ("value", "why"), [("text", "WRONGTYPE|wrong kind"), (None, "NOAUTH|Authentication")]
)
def test_a_permanent_error_is_reported_at_once(redis_server, value, why, monkeypatch, caplog):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.client.close_spider", lambda _, why: closed.append(why))
    dupefilter, _ = asked(redis_server)
    if value:
        redis_server.client.set("demo:dupefilter", value)
    else:
        redis_server.client.config_set("requirepass", "secret")
    with pytest.raises(RuntimeError, match=why):
        dupefilter.open()
    assert not dupefilter.request_seen(NEW)
    assert closed == ["urlseen_refused"]
    assert "the key demo:dupefilter" in caplog.text


def shown(error: BaseException | None) -> str:
    """Returns the traceback of an error and its causes, without lines of source code."""
    if error is None:
        return ""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return f"{error}\n{shown(before)}"


def test_no_password_is_shown(redis_server, caplog):
    redis_server.client.config_set("requirepass", "right")
    for url in ("redis://:wr0ng@127.0.0.1:{}", "redis://:wr0ng/x@127.0.0.1:{}", "http://u:wr0ng@h"):
        crawler = make_crawler({"URLSEEN_ASK_URL": url.format(redis_server.port)})
        with pytest.raises((RuntimeError, ValueError)) as raised:
            DupeFilter.from_crawler(crawler).open()
        assert "wr0ng" not in shown(raised.value) and "wr0ng" not in caplog.text
    crawler = make_crawler({"URLSEEN_ASK_URL": f"redis://:right@127.0.0.1:{redis_server.port}"})
    dupefilter = DupeFilter.from_crawler(crawler)
    assert not dupefilter.request_seen(NEW)


def test_a_whole_crawl_ends_when_urlseen_goes_away(
    redis_server, site, start_crawl, any_reactor, tmp_path
):
    settings = {
        **any_reactor,
        "DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter",
        "URLSEEN_ASK_URL": redis_server.url,
        "URLSEEN_WHEN_AWAY": "fail",
        "JOBDIR": str(tmp_path / "job"),
        "DOWNLOAD_DELAY": 0.05,
    }
    crawl = start_crawl("Links", settings, url=site.url)
    until(lambda: len(site.page_hits()) > 5, "some pages")
    redis_server.stop()
    assert crawl.wait()["finish_reason"] == "urlseen_away", crawl.log
    assert "The crawl ends" in crawl.log
    fetched = len(site.page_hits())
    assert fetched < PAGES
    # The queue in JOBDIR has kept the requests that were found meanwhile.
    redis_server.start()
    settings["DOWNLOAD_DELAY"] = 0
    assert start_crawl("Links", settings, url=site.url).wait()["finish_reason"] == "finished"
    assert len(site.page_hits()) == PAGES
