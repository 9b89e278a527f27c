"""The Lua scripts of this package are copies of those of the daemon."""

from __future__ import annotations

from pathlib import Path

import urlseen_scrapy
from servers import ROOT
from urlseen_scrapy import scripts


def test_each_script_is_a_copy_of_the_daemons():
    folder = Path(urlseen_scrapy.__file__).parent / "lua"
    daemons = [
        *(ROOT / "crates/urlseen-core/src/redis/held").glob("*.lua"),
        ROOT / "crates/urlseen-core/src/redis/script/common.lua",
    ]
    assert {path.name for path in daemons} == {path.name for path in folder.iterdir()}
    for path in daemons:
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_server_without_a_script_gets_its_text(redis_server):
    from urlseen_scrapy.wire import Wire

    wire = Wire.of_client(redis_server.client, "")
    for _ in range(2):
        redis_server.client.script_flush()
        assert scripts.BEAT.run(wire, ["consumers", "held"], "me#1") == []
        assert scripts.BEAT.run(wire, ["consumers", "held"], "me#1") == []
    assert redis_server.client.hget("consumers", "me#1") == b"4"
