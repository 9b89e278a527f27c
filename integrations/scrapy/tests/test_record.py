"""Settings that do not fit the crawl record are refused, with the name of the setting."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from conftest import make_crawler
from queues import make_queue, moved, pushed, put, to
from servers import until, write_record
from test_discovered import moved as redis_spider
from test_held import next_of
from urlseen_scrapy import DupeFilter, FifoQueue, PriorityQueue, ScrapyRedisFingerprinter
from urlseen_scrapy.discovered import SendDiscovered


class OwnFingerprinter:
    def fingerprint(self, request: Request) -> bytes:
        return request.url.encode()


def refused(redis_server, cls=FifoQueue, settings=None):
    with pytest.raises(ValueError) as raised:
        make_queue(cls, redis_server, settings, record=False)
    return str(raised.value)


@pytest.mark.parametrize(
    ("fields", "cls", "words"),
    [
        (
            {"algorithm": "scrapy-redis"},
            FifoQueue,
            [
                "REQUEST_FINGERPRINTER_CLASS is scrapy.utils.request.RequestFingerprinter",
                '"urlseen_scrapy.ScrapyRedisFingerprinter"',
                "URLSEEN_OWN_FINGERPRINTER",
            ],
        ),
        ({"sink_kind": "list"}, PriorityQueue, ["SCHEDULER_QUEUE_CLASS", 'sink.kind = "list"']),
        ({"sink_kind": "zset"}, FifoQueue, ["SCHEDULER_QUEUE_CLASS", 'sink.kind = "zset"']),
        ({"emit": "start-url"}, FifoQueue, ["SCHEDULER_QUEUE_CLASS", 'sink.emit = "start-url"']),
        ({"sink": "demo:other"}, FifoQueue, ['Set URLSEEN_SINK_KEY = "demo:other"']),
        (
            {"partitions": "16", "tags": "0.13,1.10", "kind": "native"},
            FifoQueue,
            ["lacks the field item", "restart the daemon"],
        ),
        (
            {"protocol": "3"},
            FifoQueue,
            ['protocol "3"', "install the urlseen and urlseen-scrapy of that version"],
        ),
        (
            {"same": '[{"fold":["www"]}]'},
            FifoQueue,
            ['[[same]] = [{"fold":["www"]}]', "RequestFingerprinter cannot", "urlseen.scrapy"],
        ),
        ({"drop_tracking": "2026-11"}, FifoQueue, ['fingerprint.drop_tracking = "2026-11"']),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_the_sink_exists(
    redis_server, fields, cls, words
):
    write_record(redis_server.client, **fields)
    message = refused(redis_server, cls)
    assert all(word in message for word in words), message


def test_a_record_without_a_field_is_refused(redis_server):
    write_record(redis_server.client)
    redis_server.client.hdel("urlseen:{demo:discovered}:crawl", "pop")
    assert "lacks the field pop" in refused(redis_server)


def test_the_fingerprinter_of_the_message_fits(redis_server):
    write_record(redis_server.client, algorithm="scrapy-redis")
    name = f"urlseen_scrapy.{ScrapyRedisFingerprinter.__name__}"
    settings = {"REQUEST_FINGERPRINTER_CLASS": name}
    make_queue(FifoQueue, redis_server, settings, record=False)


class Following(RequestFingerprinter):
    """Fingerprinter that accepts rules, as that of the package urlseen does."""

    def follow_rules(self, drop_tracking: str, same: str) -> None:
        self.rules = (drop_tracking, same)


def test_a_fingerprinter_is_told_the_rules_of_the_crawl(redis_server):
    for rules in (("2026-11", "[]"), ("none", '[{"fold":["www"]}]'), ("none", "[]")):
        write_record(redis_server.client, drop_tracking=rules[0], same=rules[1])
        settings = {"REQUEST_FINGERPRINTER_CLASS": Following}
        queue = make_queue(FifoQueue, redis_server, settings, record=False)
        assert queue._fingerprinter.rules == rules


def test_a_custom_fingerprinter_needs_its_setting(redis_server):
    write_record(redis_server.client)
    settings = {"REQUEST_FINGERPRINTER_CLASS": OwnFingerprinter}
    assert "OwnFingerprinter" in refused(redis_server, settings=settings)
    settings["URLSEEN_OWN_FINGERPRINTER"] = True
    make_queue(FifoQueue, redis_server, settings, record=False)


def test_send_discovered_needs_start_urls(redis_server):
    write_record(redis_server.client)
    with pytest.raises(ValueError, match='SendDiscovered needs "start-url"'):
        SendDiscovered(make_crawler(redis_spider(redis_server.url)))


@pytest.mark.parametrize("name", ["URLSEEN_SOURCE", "URLSEEN_HELD_MAXX", "URLSEEN_COLOUR"])
def test_an_unknown_setting_is_refused(redis_server, name):
    write_record(redis_server.client)
    message = refused(redis_server, settings={name: "1"})
    near = {"URLSEEN_SOURCE": "SOURCE_", "URLSEEN_HELD_MAXX": "did you mean URLSEEN_HELD_MAX?"}
    assert message.startswith(f"{name} is no setting")
    assert near.get(name, "the settings are URLSEEN_CONSUMER") in message
    with pytest.raises(ValueError, match=name):
        DupeFilter.from_crawler(make_crawler({name: "1"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URLSEEN_HELD_MAX", 0),
        ("URLSEEN_HELD_MAX", 1 << 20),
        ("URLSEEN_SOURCE_MAX", "many"),
        ("URLSEEN_CONSUMER", "a b"),
        ("URLSEEN_CONSUMER", "a#b"),
    ],
)
def test_a_wrong_value_is_refused(redis_server, name, value):
    write_record(redis_server.client)
    assert name in refused(redis_server, settings={name: value})


def test_before_the_first_daemon_a_spider_pushes_and_pops_nothing(redis_server, caplog):
    queue = make_queue(FifoQueue, redis_server, record=False)
    assert "No urlseen has run for demo:discovered yet" in caplog.text
    put(redis_server, "a")
    queue.push(to("found"))
    assert queue.pop() is None and len(queue) == 2
    assert pushed(redis_server) == ["found"]
    assert caplog.text.count("No urlseen has run") == 1
    write_record(redis_server.client)
    assert next_of(queue).url.endswith("/a")
    queue.deliveries.close()


def test_a_later_record_that_does_not_fit_ends_the_crawl(redis_server, monkeypatch, caplog):
    closed = []
    monkeypatch.setattr("urlseen_scrapy.deliveries.close_spider", lambda _, why: closed.append(why))
    queue = make_queue(FifoQueue, redis_server, record=False)
    queue.push(to("found"))
    write_record(redis_server.client, emit="url")
    assert queue.pop() is None
    assert closed == ["urlseen_refused"]
    assert 'sink.emit = "url"' in caplog.text
    assert len(queue) == 0, "no request keeps the spider open"


def test_a_restarted_daemon_with_another_config_ends_the_crawl(redis_server, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen_scrapy.deliveries.close_spider", lambda _, why: closed.append(why))
    write_record(redis_server.client, held_timeout_ms=200)
    queue = make_queue(FifoQueue, redis_server, record=False)
    assert queue.pop() is None
    write_record(redis_server.client, held_timeout_ms=200, sink="demo:other")
    until(lambda: len(queue) == 0 and closed, "the end")
    assert closed == ["urlseen_refused"]
    queue.deliveries.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"SCHEDULER": "scrapy_redis.scheduler.Scheduler"},
        {"JOBDIR": "job"},
        {"REDIS_START_URLS_KEY": "%(name)s:start_urls"},
    ],
)
def test_h10_a_held_request_is_not_passed_to_other_processes(redis_server, start_crawl, settings):
    write_record(redis_server.client, emit="start-url")
    crawl = start_crawl("RedisLinks", {**redis_spider(redis_server.url), **settings})
    crawl.end()
    assert crawl.process.exitcode == 0
    assert f"ValueError: {next(iter(settings))}" in crawl.log


def test_wrong_settings_end_a_crawl_with_the_reason(redis_server, start_crawl, site):
    write_record(redis_server.client, algorithm="scrapy-redis")
    crawl = start_crawl("Links", moved(redis_server.url, "FifoQueue"), url=site.url)
    crawl.end()
    assert "REQUEST_FINGERPRINTER_CLASS is" in crawl.log
    assert not site.hits
