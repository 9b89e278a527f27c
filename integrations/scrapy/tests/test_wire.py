"""The connection class of this package, `Wire`, which uses no pool."""

from __future__ import annotations

from redis import Redis
from redis._parsers import _RESP2Parser

from servers import RedisServer
from urlseen_scrapy.wire import Wire


def test_a_connection_works_without_hiredis(redis_server: RedisServer) -> None:
    """Without hiredis, redis-py refuses maintenance notifications on a RESP2 connection."""
    client = Redis(port=redis_server.port)
    client.connection_pool.connection_kwargs["parser_class"] = _RESP2Parser
    assert Wire.of_client(client, "").ask("PING") == b"PONG"
