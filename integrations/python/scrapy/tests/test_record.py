"""Settings that do not fit the crawl record are refused, with the name of the setting."""

from __future__ import annotations

import pickle

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from conftest import make_crawler
from queues import make_queue, moved, pushed, put, to
from servers import until, write_record
from test_held import next_of
from urlseen import fingerprint
from urlseen.scrapy import DupeFilter, Fingerprinter
from urlseen.scrapy.fingerprinter import CANONICAL_FORMS, PROBES


class OwnFingerprinter:
    def fingerprint(self, request: Request) -> bytes:
        return request.url.encode()


def refused(redis_server, settings=None):
    with pytest.raises(ValueError) as raised:
        make_queue(redis_server, settings, record=False)
    return str(raised.value)


SCRAPYS_OWN = {"REQUEST_FINGERPRINTER_CLASS": "scrapy.utils.request.RequestFingerprinter"}
#: Canonical form of the installed w3lib, and the other one.
OWN_PROBES = [fingerprint(PROBES[1], canonical=form) for form in CANONICAL_FORMS]
IS_OLD = RequestFingerprinter().fingerprint(Request(PROBES[1])) == OWN_PROBES[1]
FORM, OTHER_FORM = CANONICAL_FORMS[::-1] if IS_OLD else CANONICAL_FORMS
OTHER = "REQUEST_FINGERPRINTER_CLASS is scrapy.utils.request.RequestFingerprinter"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"algorithm": "scrapy-redis"},
            [OTHER, '"urlseen.scrapy.Fingerprinter"', 'set fingerprint.algorithm = "scrapy"'],
        ),
        (
            {"canonical": OTHER_FORM},
            [OTHER, f'= "{OTHER_FORM}"', f'and fingerprint.canonical = "{FORM}" in urlseen'],
        ),
        ({"emit": "start-url"}, ['sink.emit = "start-url"', 'Set sink.emit = "item"']),
        (
            {"partitions": "16", "tags": "0.13,1.10", "kind": "native"},
            ["lacks the field item", "restart the daemon"],
        ),
        ({"protocol": "3"}, ['protocol "3"', "install the urlseen of that version"]),
        ({"same": '[{"fold":["www"]}]'}, [OTHER, '[[same]] = [{"fold":["www"]}]']),
        ({"drop_tracking": "2026-11"}, [OTHER, 'fingerprint.drop_tracking = "2026-11"']),
        ({"keep_fragments": "true"}, [OTHER, "fingerprint.keep_fragments = true"]),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_the_sink_exists(redis_server, fields, words):
    write_record(redis_server.client, **fields)
    message = refused(redis_server, SCRAPYS_OWN)
    assert all(word in message for word in words), message


def test_a_record_without_a_field_is_refused(redis_server):
    write_record(redis_server.client)
    redis_server.client.hdel("urlseen:{demo:discovered}:crawl", "pop")
    assert "lacks the field pop" in refused(redis_server)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"algorithm": "scrapy-redis"},
        {"keep_fragments": True},
        {"canonical": "w3lib-2.4"},
        {"drop_tracking": "2026-11"},
        {"same": '[{"fold":["www"]}]'},
    ],
)
def test_the_fingerprinter_follows_the_crawl(redis_server, fields):
    record = {name: "true" if value is True else value for name, value in fields.items()}
    write_record(redis_server.client, **record)
    url = "https://www.example.com/?utm_source=x&b=1&a=2;c#part"
    for named in ({}, {"URLSEEN_FINGERPRINT_ALGORITHM": "scrapy-2.6"}):
        queue = make_queue(redis_server, named, record=False)
        assert isinstance(queue._fingerprinter, Fingerprinter)
        assert queue._fingerprinter.fingerprint(Request(url)) == fingerprint(url, **fields)


def test_a_custom_fingerprinter_needs_its_setting(redis_server):
    write_record(redis_server.client)
    settings = {"REQUEST_FINGERPRINTER_CLASS": OwnFingerprinter}
    message = refused(redis_server, settings=settings)
    assert "OwnFingerprinter" in message and "URLSEEN_OWN_FINGERPRINTER = True" in message
    settings["URLSEEN_OWN_FINGERPRINTER"] = True
    queue = make_queue(redis_server, settings, record=False)
    # urlseen does not recognize a fingerprint of this length at the start of an item.
    queue.push(to("a"))
    queue.deliveries.flush()
    fields = pickle.loads(redis_server.client.lpop("demo:discovered"))
    assert fields["fingerprint"] == to("a").url.encode().hex()


@pytest.mark.parametrize("name", ["URLSEEN_SOURCE", "URLSEEN_HELD_MAXX", "URLSEEN_COLOUR"])
def test_an_unknown_setting_is_refused(redis_server, name):
    write_record(redis_server.client)
    message = refused(redis_server, settings={name: "1"})
    near = {"URLSEEN_SOURCE": "SOURCE_", "URLSEEN_HELD_MAXX": "did you mean URLSEEN_HELD_MAX?"}
    assert message.startswith(f"{name} is no setting")
    assert near.get(name, "the settings are URLSEEN_ASK_URL") in message
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
        ("URLSEEN_LIMIT", [{"by": "host", "max": 1}]),
    ],
)
def test_a_wrong_value_is_refused(redis_server, name, value):
    write_record(redis_server.client)
    assert name in refused(redis_server, settings={name: value})


def test_before_the_first_daemon_a_spider_pushes_and_pops_nothing(redis_server, caplog):
    queue = make_queue(redis_server, record=False)
    assert "No urlseen has run for demo:discovered yet" in caplog.text
    put(redis_server, "a")
    queue.push(to("found"))
    assert queue.pop() is None and len(queue) == 1, "the sink is not known yet"
    assert pushed(redis_server) == ["found"]
    assert caplog.text.count("No urlseen has run") == 1
    write_record(redis_server.client)
    assert next_of(queue).url.endswith("/a")
    queue.deliveries.close()


def test_a_later_record_that_does_not_fit_ends_the_crawl(redis_server, monkeypatch, caplog):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, why: closed.append(why))
    queue = make_queue(redis_server, record=False)
    queue.push(to("found"))
    write_record(redis_server.client, emit="url")
    assert queue.pop() is None
    assert closed == ["urlseen_refused"]
    assert 'sink.emit = "url"' in caplog.text
    assert len(queue) == 0, "no request keeps the spider open"


def test_a_restarted_daemon_with_another_config_ends_the_crawl(redis_server, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, why: closed.append(why))
    write_record(redis_server.client, held_timeout_ms=200)
    queue = make_queue(redis_server, record=False)
    assert queue.pop() is None
    write_record(redis_server.client, held_timeout_ms=200, emit="url")
    until(lambda: len(queue) == 0 and closed, "the end")
    assert closed == ["urlseen_refused"]
    queue.deliveries.close()


def test_wrong_settings_end_a_crawl_with_the_reason(redis_server, start_crawl, site):
    write_record(redis_server.client, algorithm="scrapy-redis")
    crawl = start_crawl("Links", moved(redis_server.url) | SCRAPYS_OWN, url=site.url)
    crawl.end()
    before, _, _ = crawl.log.partition("Traceback")
    assert "\nERROR urlseen.scrapy: REQUEST_FINGERPRINTER_CLASS is" in before
    assert not site.hits
