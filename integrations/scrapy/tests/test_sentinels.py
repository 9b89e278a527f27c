"""Crawls with a primary that Sentinels name, and the URLs of several nodes."""

from __future__ import annotations

import time

import pytest
from redis.connection import SSLConnection
from redis.exceptions import AuthenticationError, ConnectionError
from urlseen._urlseen import Address, Asker, Refused

from conftest import make_crawler
from queues import moved
from servers import RedisServer
from test_cluster import CLIENT
from urlseen_scrapy import NoDupeFilter, Redis, nodes
from urlseen_scrapy.nodes import address_of


@pytest.fixture
def sentinel(tmp_path, redis_server):
    sentinel = _sentinel(tmp_path, redis_server.port)
    yield sentinel
    sentinel.close()


def _sentinel(folder, primary, lines=""):
    config = folder / f"sentinel-{primary}.conf"
    config.write_text(f"sentinel monitor mymaster 127.0.0.1 {primary} 1\n{lines}\n")
    return RedisServer(folder, str(config), "--sentinel")


def client_of(*sentinels, login="", more=""):
    hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    return Redis.from_url(f"redis+sentinel://{login}{hosts}/mymaster{more}")


def test_a_switch_ends_a_connection_to_a_primary_that_still_answers(
    tmp_path, redis_server, sentinel, monkeypatch
):
    monkeypatch.setattr(nodes, "LOOK_S", 0.0)
    (tmp_path / "second").mkdir()
    second = RedisServer(tmp_path / "second")
    client = client_of(sentinel)
    assert client.incr("calls") == 1
    sentinel.client.execute_command("SENTINEL REMOVE", "mymaster")
    sentinel.client.execute_command("SENTINEL MONITOR", "mymaster", "127.0.0.1", second.port, 1)
    assert client.incr("calls") == 1
    assert [each.client.get("calls") for each in (redis_server, second)] == [b"1", b"1"]
    sentinel.stop()
    assert client.incr("calls") == 2, "the primary answers without the Sentinels"
    client.connection_pool.disconnect()
    with pytest.raises(ConnectionError, match="no Sentinel names mymaster"):
        client.incr("calls")
    second.close()


def test_a_server_that_is_no_primary_is_not_used(tmp_path, redis_server):
    (tmp_path / "replica").mkdir()
    replica = RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", str(redis_server.port))
    sentinel = _sentinel(tmp_path, replica.port)
    with pytest.raises(ConnectionError, match="which is not a primary"):
        client_of(sentinel).ping()
    for each in (sentinel, replica):
        each.close()


@pytest.mark.parametrize("is_required", [False, True])
def test_a_sentinel_gets_the_login_only_if_it_requires_one(tmp_path, redis_server, is_required):
    redis_server.client.config_set("requirepass", "secret")
    sentinel = _sentinel(tmp_path, redis_server.port, "sentinel auth-pass mymaster secret")
    if is_required:
        sentinel.client.acl_setuser("default", enabled=True, passwords=["+secret"])
    client = client_of(sentinel, login=":secret@", more="/3")
    assert client.ping()
    assert Asker(address_of(client)).ask([b"PING"]) == b"PONG"
    wrong = client_of(sentinel, login=":wrong@")
    for call in (wrong.ping, lambda: Asker(address_of(wrong)).ask([b"PING"])):
        with pytest.raises((AuthenticationError, Refused), match="WRONGPASS|authentication failed"):
            call()
    sentinel.close()


def test_a_node_that_does_not_answer_is_not_asked_first_again(tmp_path, redis_server, sentinel):
    (tmp_path / "frozen").mkdir()
    silent = _sentinel(tmp_path / "frozen", redis_server.port)
    asker = Asker(address_of(client_of(silent, sentinel)))
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
    client = Redis.from_url(f"redis+sentinel://127.0.0.1:{sentinel.port}/other")
    for call in (client.ping, lambda: Asker(address_of(client)).ask([b"PING"])):
        with pytest.raises(
            (AuthenticationError, Refused), match="SENTINEL MASTERS shows the names"
        ):
            call()


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://ann:pass/word@a/mymaster",
        "redis+sentinel://ann:pass-word@a",
        "redis+sentinel://ann:pass-word@a/my master",
        "redis+sentinel://ann:pass-word@a/mymaster/word",
        "redis+sentinel://ann:pass-word@/mymaster",
        "redis+sentinel://ann:pass-word@a,/mymaster",
        "redis+cluster://ann:pass-word@a:word",
        "redis+cluster://ann:pass-word@a:70000",
        "redis+cluster://ann:pass-word@a/3",
        "redis+cluster://ann:pass-word@a#word",
        "redis+nodes://ann:pass-word@a",
        "redis://ann:pass-word:word",
        "http://ann:pass-word@a",
    ],
)
def test_a_bad_url_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="REDIS_URL") as raised:
        Redis.from_url(url)
    assert "pass" not in str(raised.value).replace("password", "")
    assert (
        raised.value.__cause__ is None
        and raised.value.__suppress_context__
        or not (raised.value.__context__)
    )


def test_parts_of_a_url_and_options_reach_all_connections(monkeypatch):
    monkeypatch.setattr(nodes, "Address", lambda *words, **more: (words, more))
    url = "rediss+sentinel://ann:p%40ss@a,[::1]:7/mymaster/3?ssl_ca_certs=ca.pem"
    client = Redis.from_url(url, socket_timeout=30, socket_connect_timeout=5, db=1)
    found = client.connection_pool.connection_kwargs
    expected = {"username": "ann", "password": "p@ss", "db": 3, "socket_timeout": 30}
    assert {name: found[name] for name in expected} == expected
    assert issubclass(client.connection_pool.connection_class, SSLConnection)
    files = {"client_name": None, "ca": "ca.pem", "cert": None, "key": None}
    url = "rediss+sentinel://ann:p%40ss@a,[::1]:7/mymaster/3"
    assert address_of(client) == ((url, 1.0, 30), files)
    for url, expected in (
        ("valkey+cluster://a:7000,b/0", "redis+cluster://a:7000,b/0"),
        ("redis://:p%2Fss@[::1]/2", "redis://:p%2Fss@[::1]:6379/2"),
        ("unix://ann:p%26ss@/tmp/a b?db=2", "unix:///tmp/a%20b?db=2&user=ann&pass=p%26ss"),
    ):
        ((found, *_), _) = address_of(Redis.from_url(url))
        assert found == expected
        Address(found, 1.0, 1.0)


def test_certificates_are_always_checked():
    for wrong in ("ssl_cert_reqs=none", "ssl_check_hostname=false"):
        with pytest.raises(ValueError, match="Name its authority in ssl_ca_certs"):
            address_of(Redis.from_url(f"rediss://a?{wrong}"))


def test_the_missing_setting_is_named():
    settings = moved("redis+sentinel://a,b/mymaster", "FifoQueue")
    with pytest.raises(ValueError, match='Set REDIS_PARAMS = {"redis_cls": "urlseen_scrapy.Redis"'):
        NoDupeFilter.from_settings(make_crawler(settings).settings)
    for fitting in (settings | CLIENT, moved("redis://a", "FifoQueue")):
        NoDupeFilter.from_settings(make_crawler(fitting).settings)
