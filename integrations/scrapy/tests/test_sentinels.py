"""Crawls with a primary that Sentinels name, and the URLs of several nodes."""

from __future__ import annotations

import pytest

from conftest import make_crawler
from queues import moved
from servers import RedisServer, free_port
from test_cluster import CLIENT
from urlseen_scrapy import NoDupeFilter, Redis, nodes
from urlseen_scrapy.wire import Away, Refused, Wire


@pytest.fixture
def sentinel(tmp_path, redis_server):
    sentinel = _sentinel(tmp_path, redis_server.port)
    yield sentinel
    sentinel.close()


def _sentinel(folder, primary, lines=""):
    config = folder / f"sentinel-{primary}.conf"
    config.write_text(f"sentinel monitor mymaster 127.0.0.1 {primary} 1\n{lines}\n")
    return RedisServer(folder, str(config), "--sentinel")


def wire_of(*sentinels, login="", more=""):
    hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    return Wire.of_client(Redis.from_url(f"redis+sentinel://{login}{hosts}/mymaster{more}"), "")


def test_a_switch_ends_a_connection_to_a_primary_that_still_answers(
    tmp_path, redis_server, sentinel, monkeypatch
):
    monkeypatch.setattr(nodes, "LOOK_S", 0.0)
    (tmp_path / "second").mkdir()
    second = RedisServer(tmp_path / "second")
    wire = wire_of(sentinel)
    assert wire.ask("INCR", "calls") == 1
    sentinel.client.execute_command("SENTINEL REMOVE", "mymaster")
    sentinel.client.execute_command("SENTINEL MONITOR", "mymaster", "127.0.0.1", second.port, 1)
    with pytest.raises(Away, match="switched mymaster from .*:.* to .*:"):
        wire.ask("INCR", "calls")
    assert wire.ask("INCR", "calls") == 1
    assert [each.client.get("calls") for each in (redis_server, second)] == [b"1", b"1"]
    sentinel.stop()
    assert wire.ask("INCR", "calls") == 2, "the primary answers without the Sentinels"
    wire.close()
    with pytest.raises(Away, match="no Sentinel names the primary mymaster: 127.0.0.1:"):
        wire.ask("INCR", "calls")
    second.close()


def test_a_server_that_is_no_primary_is_not_used(tmp_path, redis_server):
    (tmp_path / "replica").mkdir()
    replica = RedisServer(tmp_path / "replica", "--replicaof", "127.0.0.1", str(redis_server.port))
    sentinel = _sentinel(tmp_path, replica.port)
    with pytest.raises(Away, match="is not a primary. Wait for the end of the failover"):
        wire_of(sentinel).ask("PING")
    for each in (sentinel, replica):
        each.close()


@pytest.mark.parametrize("is_required", [False, True])
def test_a_sentinel_gets_the_login_only_if_it_requires_one(tmp_path, redis_server, is_required):
    redis_server.client.config_set("requirepass", "secret")
    sentinel = _sentinel(tmp_path, redis_server.port, "sentinel auth-pass mymaster secret")
    if is_required:
        sentinel.client.acl_setuser("default", enabled=True, passwords=["+secret"])
    assert wire_of(sentinel, login=":secret@", more="/3").ask("PING") == b"PONG"
    with pytest.raises(Refused, match="invalid username-password|WRONGPASS"):
        wire_of(sentinel, login=":wrong@").ask("PING")
    sentinel.close()


def test_a_node_that_does_not_answer_is_not_asked_first_again(redis_server, sentinel):
    other = type("Closed", (), {"port": free_port()})
    wire = wire_of(other, sentinel)
    with sentinel.frozen(), pytest.raises(Away, match="Timeout"):
        wire.ask("PING")
    assert wire.ask("PING") == b"PONG"
    first, *_ = wire._connection._nodes._nodes
    assert first.port == sentinel.port


def test_an_unknown_name_is_an_error(sentinel):
    client = Redis.from_url(f"redis+sentinel://127.0.0.1:{sentinel.port}/other")
    with pytest.raises(Away, match="SENTINEL MASTERS shows the names"):
        Wire.of_client(client, "").ask("PING")


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


def test_parts_of_a_url_and_options_reach_all_connections():
    url = "rediss+sentinel://ann:p%40ss@a,[::1]:7/mymaster/3?ssl_check_hostname=false"
    pool = Redis.from_url(url, socket_timeout=30, db=1).connection_pool
    found = pool.connection_kwargs
    expected = {"username": "ann", "password": "p@ss", "db": 3, "socket_timeout": 30}
    assert {name: found[name] for name in expected} == expected
    assert found["nodes"]._nodes == [("a", 26379), ("::1", 7)]
    assert issubclass(pool.connection_class, nodes.SSLConnection)
    assert found["nodes"]._class is nodes.SSLConnection
    cluster = Redis.from_url("valkey+cluster://a:7000,b/0").connection_pool.connection_kwargs
    assert cluster["nodes"]._nodes == [("a", 7000), ("b", 6379)]


def test_the_missing_setting_is_named():
    settings = moved("redis+sentinel://a,b/mymaster", "FifoQueue")
    with pytest.raises(ValueError, match='Set REDIS_PARAMS = {"redis_cls": "urlseen_scrapy.Redis"'):
        NoDupeFilter.from_settings(make_crawler(settings).settings)
    for fitting in (settings | CLIENT, moved("redis://a", "FifoQueue")):
        NoDupeFilter.from_settings(make_crawler(fitting).settings)
