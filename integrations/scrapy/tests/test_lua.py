"""Runs the Lua scripts, which are those of the daemon."""

from __future__ import annotations

from urlseen_scrapy import scripts


def test_a_server_without_a_script_gets_its_text(redis_server):
    from urlseen_scrapy.wire import Wire

    wire = Wire.of_client(redis_server.client, "")
    for _ in range(2):
        redis_server.client.script_flush()
        assert scripts.BEAT.run(wire, ["consumers", "held"], "me#1") == []
        assert scripts.BEAT.run(wire, ["consumers", "held"], "me#1") == []
    seconds, micros = redis_server.client.time()
    age = seconds + micros / 1e6 - int(redis_server.client.hget("consumers", "me#1")) / 1000
    assert -1 < age < 60
    # A heartbeat grows also if the clock was set back.
    redis_server.client.hset("consumers", "me#1", 1 << 50)
    scripts.BEAT.run(wire, ["consumers", "held"], "me#1")
    assert redis_server.client.hget("consumers", "me#1") == b"%d" % ((1 << 50) + 1)
