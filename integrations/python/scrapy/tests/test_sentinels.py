"""Addresses: Sentinels, nodes of a cluster, files for TLS."""

from __future__ import annotations

import time

import pytest

from conftest import make_crawler
from servers import RedisServer
from urlseen._urlseen import Asker, Away, Refused
from urlseen.scrapy.settings import address


@pytest.fixture
def sentinel(tmp_path, redis_server):
    sentinel = _sentinel(tmp_path, redis_server.port)
    yield sentinel
    sentinel.close()


def _sentinel(folder, primary, lines=""):
    config = folder / f"sentinel-{primary}.conf"
    config.write_text(f"sentinel monitor mymaster 127.0.0.1 {primary} 1\n{lines}\n")
    return RedisServer(folder, str(config), "--sentinel")


def asker_of(*sentinels, login="", more=""):
    hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    return _asker(f"redis+sentinel://{login}{hosts}/mymaster{more}")


def _asker(url, **settings):
    return Asker(address(make_crawler({"URLSEEN_URL": url, **settings}).settings, "URLSEEN_URL"))


def test_a_server_that_is_no_primary_is_not_used(tmp_path, redis_server):
    (tmp_path / "replica").mkdir()
    replica = RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", str(redis_server.port))
    sentinel = _sentinel(tmp_path, replica.port)
    with pytest.raises(Away, match="this server is not a primary"):
        asker_of(sentinel).ask([b"PING"])
    for each in (sentinel, replica):
        each.close()


@pytest.mark.parametrize("is_required", [False, True])
def test_a_sentinel_gets_the_login_only_if_it_requires_one(tmp_path, redis_server, is_required):
    redis_server.client.config_set("requirepass", "secret")
    sentinel = _sentinel(tmp_path, redis_server.port, "sentinel auth-pass mymaster secret")
    if is_required:
        sentinel.client.acl_setuser("default", enabled=True, passwords=["+secret"])
    assert asker_of(sentinel, login=":secret@", more="/3").ask([b"PING"]) == b"PONG"
    with pytest.raises(Refused, match="WRONGPASS|authentication failed"):
        asker_of(sentinel, login=":wrong@").ask([b"PING"])
    sentinel.close()


def test_a_node_that_does_not_answer_is_not_asked_first_again(tmp_path, redis_server, sentinel):
    (tmp_path / "frozen").mkdir()
    silent = _sentinel(tmp_path / "frozen", redis_server.port)
    asker = asker_of(silent, sentinel)
    with silent.frozen():
        waited = []
        for _ in range(2):
            begun = time.monotonic()
            assert asker.ask([b"PING"]) == b"PONG"
            waited.append(time.monotonic() - begun)
            asker.close()
    assert waited[0] > 0.9 > waited[1]
    silent.close()


def test_an_unknown_name_is_an_error(sentinel):
    asker = _asker(f"redis+sentinel://127.0.0.1:{sentinel.port}/other")
    with pytest.raises(Refused, match="SENTINEL MASTERS shows the names"):
        asker.ask([b"PING"])


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://ann:pass/word@a/mymaster",
        "redis+sentinel://ann:pass-word@a",
        "redis+sentinel://ann:pass-word@a/mymaster/word",
        "redis+sentinel://ann:pass-word@/mymaster",
        "redis+sentinel://ann:pass-word@a,/mymaster",
        "redis+cluster://ann:pass-word@a:word",
        "redis+cluster://ann:pass-word@a:70000",
        "redis+cluster://ann:pass-word@a/3",
        "redis+nodes://ann:pass-word@a",
        "redis://ann:pass-word:word",
        "http://ann:pass-word@a",
    ],
)
def test_a_bad_url_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="URLSEEN_URL") as raised:
        _asker(url)
    assert "pass" not in str(raised.value).replace("password", "")
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"ca": "no/such/file"}, "ca is .*, and cannot be read"),
        ({"verify": False}, "it may have ca, cert, key"),
    ],
)
def test_wrong_files_for_tls_are_refused(files, why):
    with pytest.raises(ValueError, match=why):
        _asker("rediss://a", URLSEEN_TLS=files)
