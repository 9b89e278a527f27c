"""Lost commands and lost answers: the rules H1, H2 and H3 of the protocol."""

from __future__ import annotations

import pytest

from queues import held, held_numbers, make_queue, name_of, pushed, put, to, waiting
from scripts import HASHES, SCRIPTS, pop
from servers import RedisServer, until
from test_held import next_of

#: Bytes by which the proxy recognizes each command.
COMMANDS = {
    "pop": HASHES["pop"],
    "finish": HASHES["finish"],
    # The command itself, in Redis's protocol. Scripts also have the word RPUSH as an argument.
    "push": b"\r\nRPUSH\r\n$15\r\ndemo:discovered",
}


@pytest.fixture
def lossy(redis_server, proxy):
    """Makes a queue that connects through a proxy. The server knows the scripts."""
    for text in SCRIPTS.values():
        redis_server.client.script_load(text)
    queue = make_queue(redis_server, through=proxy)
    yield queue
    queue.deliveries.close()


@pytest.mark.parametrize("what", ["question", "answer"])
@pytest.mark.parametrize("command", ["pop", "finish", "push"])
def test_h1_h2_a_lost_command_loses_and_repeats_nothing(redis_server, proxy, lossy, command, what):
    put(redis_server, "a", "b")
    engine = lossy.spider.crawler.engine
    proxy.lose(COMMANDS[command], what)
    first = next_of(lossy)
    assert first.url.endswith("/a"), "the pop returned another request"
    engine.page(first, to("filtered"), to("unfiltered", dont_filter=True))
    lossy.push(engine.scraper.output[0])
    lossy.push(engine.scraper.output[1])
    # An item that belongs to no page is sent with a plain push.
    lossy.push(to("loose"))
    engine.finish(first)
    until(lambda: lossy.deliveries.flush() and not held(redis_server), "the acknowledgement")
    assert proxy.to_lose == 0, "it was lost"
    found = pushed(redis_server)
    assert (found.count("filtered"), found.count("unfiltered")) == (1, 1)
    assert found.count("loose") == (2 if (command, what) == ("push", "answer") else 1)
    second = next_of(lossy)
    assert second.url.endswith("/b")
    assert held_numbers(redis_server) == [2]


def test_h1_an_unknown_delivery_is_requeued_after_a_reconnect(redis_server, proxy, lossy):
    put(redis_server, "a", "b")
    next_of(lossy)
    assert pop(redis_server, name_of(lossy), 7).endswith(b'/b"}')
    proxy.lead_to(redis_server.port)
    until(lambda: len(lossy) and waiting(redis_server) == ["b"], "the request to be given back")
    assert held_numbers(redis_server) == [1]


@pytest.mark.parametrize("what", ["question", "answer"])
def test_h3_an_item_that_cannot_be_read_is_held_until_it_is_rejected(
    redis_server, proxy, lossy, what
):
    """If the item were acknowledged first, a crash before its rejection would lose it."""
    redis_server.client.rpush("demo:unseen", "no request")
    proxy.lose(b"the spider demo cannot", what)
    assert lossy.pop() is None
    until(lossy.deliveries.flush, "the rejection to be repeated")
    assert proxy.to_lose == 0, "it was lost"
    assert (held(redis_server), redis_server.client.llen("demo:rejected")) == ([], 1)


def test_h3_links_that_a_callback_passes_to_the_engine_are_pushed_before_the_page(
    redis_server, lossy, proxy
):
    put(redis_server, "a")
    page = next_of(lossy)
    proxy.lose(COMMANDS["push"], "question")
    with redis_server.client.monitor() as monitor:
        lossy.push(to("loose"))
        lossy.spider.crawler.engine.finish(page)
        until(lambda: lossy.deliveries.flush() and not held(redis_server), "both")
        for entry in monitor.listen():
            assert not entry["command"].startswith("HDEL"), "the page must wait for the lost push"
            if entry["command"].startswith("RPUSH demo:discovered"):
                break
    assert proxy.to_lose == 0, "it was lost"
    assert pushed(redis_server) == ["loose"]


@pytest.fixture
def replica(redis_server, tmp_path):
    folder = tmp_path / "replica"
    folder.mkdir()
    # Redis must not have to write a file before it can be stopped.
    primary = ["--appendonly", "no", "--replicaof", "127.0.0.1", str(redis_server.port)]
    server = RedisServer(folder, *primary)
    until(lambda: server.client.info("replication")["master_link_status"] == "up", "the replica")
    yield server
    server.close()


def test_h1_an_acknowledgement_that_a_failover_lost_is_repeated(redis_server, proxy, replica):
    put(redis_server, "a", "b")
    queue = make_queue(redis_server, through=proxy)
    engine = queue.spider.crawler.engine
    page = next_of(queue)
    assert redis_server.client.wait(1, 10000) == 1
    # The replica lags from here on.
    replica.client.replicaof("NO", "ONE")
    engine.page(page, to("1"), to("u", dont_filter=True))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(page)
    other = next_of(queue)
    assert (pushed(redis_server), held_numbers(redis_server)) == (["1", "u"], [2])
    proxy.lead_to(replica.port)
    # In the replica, the page is held again, and the other request waits again.
    until(lambda: len(queue) and waiting(replica) == ["a", "b"], "the page to be given back")
    assert not held(replica)
    engine.page(other, to("other", dont_filter=True))
    queue.push(engine.scraper.output[0])
    engine.finish(other)
    assert pushed(replica) == [], "the page is fetched again, and then pushes its links"
    again = next_of(queue)
    assert again.url == page.url
    engine.page(again, to("1"), to("u", dont_filter=True))
    for request in engine.scraper.output:
        queue.push(request)
    engine.finish(again)
    assert pushed(replica) == ["1", "u"]
    queue.deliveries.close()
