"""Held requests: Redis holds a popped request until the spider has finished it.

A test name begins with the rules of the protocol that the test checks:

H1   a lost reply, a late command or a failover loses no delivery and repeats none
H2   a page whose request another consumer has got pushes no links
H3   a request is held until it is finished, with any outcome
H4   the count of requests includes waiting, moving and held requests
H5   the requests of a stopped consumer are requeued, or go to the rejects in the end
H6   a consumer that is alive keeps its requests
H7   equal requests and consumers with equal names are separate
H8   links and acknowledgement are one step
H9   asking can lose a link in a crash
H10  the rules also apply to `SendDiscovered`
"""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace

import pytest

from queues import held, held_numbers, make_queue, partition_of, pushed, put, to, waiting
from servers import until, write_record
from urlseen_scrapy import FifoQueue
from urlseen_scrapy.engine import RELIED_ON, check_engine
from urlseen_scrapy.reject import write_reject

CONSUMERS = "urlseen:{demo:discovered}:consumers"
REQUEUES = "urlseen:{demo:discovered}:requeues"
HELD = "urlseen:{demo:discovered}:held:"


def next_of(queue):
    """Waits until the queue has a request, and returns it."""
    return until(queue.pop, "a request")


def names(server):
    return [name.decode() for name in server.client.hkeys(CONSUMERS)]


@pytest.fixture
def queue(redis_server):
    queue = make_queue(FifoQueue, redis_server)
    yield queue
    queue.deliveries.close()


def test_h1_an_unknown_delivery_is_requeued_after_a_heartbeat(redis_server):
    write_record(redis_server.client, held_timeout_ms=200)
    queue = make_queue(FifoQueue, redis_server, record=False)
    put(redis_server, "a", "b")
    first = next_of(queue)
    queue.spider.crawler.engine.finish(first)
    # Redis reads the first call of pop only now.
    assert partition_of(queue).consumer.pop(1).endswith(b'/b"}')
    until(lambda: len(queue) and waiting(redis_server) == ["b"], "the request to be given back")
    assert not held(redis_server) and not redis_server.client.exists(REQUEUES)
    queue.deliveries.close()


def test_h2_a_page_that_another_spider_has_pushes_nothing(redis_server, queue):
    put(redis_server, "a")
    other = make_queue(FifoQueue, redis_server)
    slow = next_of(queue)
    slow_engine, engine = queue.spider.crawler.engine, other.spider.crawler.engine
    (name,) = names(redis_server)
    beat = redis_server.client.hget(CONSUMERS, name).decode()
    assert partition_of(other).consumer.reclaim(name, beat) == (1, 0)
    fast = next_of(other)
    assert fast.url == slow.url
    for page, its_queue, its_engine in ((fast, other, engine), (slow, queue, slow_engine)):
        its_engine.page(page, to("unfiltered", dont_filter=True))
        its_queue.push(its_engine.scraper.output[0])
        its_engine.finish(page)
    assert pushed(redis_server) == ["unfiltered"]
    assert queue.spider.crawler.stats.get_value("urlseen/given_to_others") == 1
    assert not held(redis_server) and not redis_server.client.exists(REQUEUES)


def test_h5_values_of_other_programs_are_rejected_or_left(redis_server, queue):
    client, consumer = redis_server.client, partition_of(queue).consumer
    values = {b"\xfe": b"text", b"a": b"x 0 no score", b"b": b"0 2 too often"}
    client.hset(HELD + "odd", mapping=values)
    client.set(HELD + "type", "text")
    client.hset(CONSUMERS, mapping={"odd": 1, "type": 1})
    assert consumer.reclaim("type", "1") == (0, 0)
    assert consumer.reclaim("odd", "1") == (0, 3)
    rejects = client.lrange("demo:rejected", 0, -1)
    reasons = sorted(json.loads(reject)["reason"].split()[0] for reject in rejects)
    assert reasons == ["delivered", "the", "the"]
    assert not client.exists(HELD + "odd") and not client.hexists(CONSUMERS, "odd")


def test_h2_unfiltered_links_wait_for_the_acknowledgement(redis_server, queue, monkeypatch):
    monkeypatch.setattr("urlseen_scrapy.deliveries.PUSH_ITEMS", 2)
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine.page(page, to("1"), to("u", dont_filter=True), to("2"), to("3"))
    for request in engine.scraper.output:
        queue.push(request)
    assert pushed(redis_server) == ["1", "2"], "enough links for a push are sent early"
    assert queue.pop() is None
    assert pushed(redis_server) == ["1", "2", "3"], "without other work, all links are sent"
    engine.finish(page)
    assert pushed(redis_server) == ["1", "2", "3", "u"]


def test_h3_a_delivery_is_found_by_its_request_and_not_by_meta(redis_server, queue):
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    copies = [to(name, meta=page.meta) for name in ("1", "2")]
    engine.page(page, *copies, page.replace(url="https://example.com/3"))
    for request in engine.scraper.output:
        queue.push(request)
        engine.finish(request)
    assert (len(held(redis_server)), pushed(redis_server)) == (1, []), "a link ended its page"
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["1", "2", "3"])
    assert page.meta == {}


@pytest.mark.parametrize("is_held", [True, False])
def test_h3_a_retry_and_a_redirect_are_pushed_with_the_acknowledgement(
    redis_server, queue, is_held
):
    put(redis_server, "a")
    page = next_of(queue)
    retry = page.replace(dont_filter=True)
    engine = queue.spider.crawler.engine
    engine._handle_downloader_output(retry, page)
    queue.push(retry)
    if not is_held:
        # Another spider has the page now, and retries it.
        partition_of(queue).consumer.give_back([1])
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["a"] if is_held else [])


def test_h3_a_middleware_that_returns_the_request_itself_loses_nothing(redis_server, queue):
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine._handle_downloader_output(page, page)
    queue.push(page)
    engine.finish(page)
    assert (held(redis_server), pushed(redis_server)) == ([], ["a"])


@pytest.mark.parametrize(("where", "path", "_"), RELIED_ON)
def test_h3_a_scrapy_without_the_needed_methods_is_refused(
    redis_server, monkeypatch, where, path, _
):
    check_engine()
    owner, _, name = path.rpartition(".")
    monkeypatch.delattr(getattr(where, owner) if owner else where, name)
    with pytest.raises(RuntimeError, match=f"has no {path}"):
        make_queue(FifoQueue, redis_server)


def test_h3_a_scheduler_that_passes_copies_is_refused(redis_server, queue, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen_scrapy.deliveries.close_spider", lambda _, why: closed.append(why))
    put(redis_server, "a", "b")
    page = next_of(queue)
    queue.spider.crawler.engine._slot.inprogress = {page.copy()}
    assert queue.pop() is None
    assert closed == ["urlseen_refused"]


def test_h4_links_are_sent_before_the_count(redis_server, queue):
    queue.push(to("1"))
    assert pushed(redis_server) == []
    assert len(queue) == 1
    assert pushed(redis_server) == ["1"]


def stopped_consumer(server, cls=FifoQueue):
    """Makes a consumer that pops a request and then stops. Returns its name and the request."""
    before = set(names(server))
    queue = make_queue(cls, server, record=False)
    request = next_of(queue)
    partition_of(queue).heartbeat.stop()
    (name,) = set(names(server)) - before
    return name, request


def test_h6_unchanged_heartbeats_do_not_count_while_redis_is_away(redis_server, proxy, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("urlseen_scrapy.reclaim.time", clock)
    write_record(redis_server.client, held_timeout_ms=8000)
    put(redis_server, "a")
    name, _ = stopped_consumer(redis_server)
    looks = make_queue(FifoQueue, redis_server, through=proxy, record=False)
    wire = partition_of(looks).wire

    def look(seconds):
        clock.now += seconds
        len(looks)
        return partition_of(looks)._reclaimer._since[name][1]

    begun = look(1)
    for _ in range(3):
        assert {look(2) for _ in range(3)} == {begun}
        # The time-out has not ended yet.
        connects = wire.connects
        proxy.lead_to(redis_server.port)
        until(lambda made=connects: len(looks) and wire.connects > made, "a new connection")
        before, begun = begun, look(1)
        assert begun == clock.now > before, "the time-out starts again"
    # The time-out also starts again if this process was paused.
    assert look(60) == clock.now
    assert len(held(redis_server)) == 1
    for _ in range(3):
        look(2)
    clock.now += 2
    len(looks)
    assert (held(redis_server), waiting(redis_server)) == ([], ["a"])


def test_h7_equal_requests_and_equal_names_are_separate(redis_server):
    put(redis_server, "a", "a")
    settings = {"URLSEEN_CONSUMER": "twin"}
    twins = [make_queue(FifoQueue, redis_server, settings) for _ in range(2)]
    pages = [next_of(twin) for twin in twins]
    assert len({*names(redis_server)}) == 2
    assert all(name.startswith("twin#") for name in names(redis_server))
    twins[0].spider.crawler.engine.finish(pages[0])
    assert len(held(redis_server)) == 1
    put(redis_server, "a")
    again = next_of(twins[0])
    assert again.url == pages[0].url
    twins[1].spider.crawler.engine.finish(pages[1])
    assert held_numbers(redis_server) == [2]
    for twin in twins:
        twin.deliveries.close()


def test_h8_links_and_acknowledgement_are_one_step(redis_server, queue, monkeypatch):
    closed = []
    monkeypatch.setattr("urlseen_scrapy.deliveries.close_spider", lambda _, why: closed.append(why))
    put(redis_server, "a")
    page = next_of(queue)
    engine = queue.spider.crawler.engine
    engine.page(page, to("1"))
    queue.push(engine.scraper.output[0])
    redis_server.client.set("demo:discovered", "text")
    engine.finish(page)
    assert len(held(redis_server)) == 1, "no acknowledgement without the links of the page"
    assert closed == ["urlseen_refused"]
    redis_server.client.delete("demo:discovered")


def test_h5_a_request_that_may_have_killed_its_consumers_is_held_alone(redis_server, queue):
    put(redis_server, "new", "suspect", "next")
    item = redis_server.client.lindex("demo:unseen", 1)
    redis_server.client.hset(REQUEUES, hashlib.sha1(item).hexdigest(), "2 one#1 other#2")
    engine = queue.spider.crawler.engine
    for name in ("new", "suspect", "next"):
        page = next_of(queue)
        assert page.url.endswith(name)
        assert queue.deliveries._partitions.pop() is None
        engine.finish(page)
    assert not held(redis_server) and not redis_server.client.exists(REQUEUES)


def test_a_closing_spider_requeues_unfinished_requests(redis_server):
    put(redis_server, "a", "b", "c")
    for name in ("a", "b", "c"):
        queue = make_queue(FifoQueue, redis_server)
        queue.push(to(f"loose-{name}"))
        before = waiting(redis_server)
        left = [next_of(queue) for _ in before]
        queue.deliveries.left(left[0])
        queue.deliveries.close()
        assert sorted(waiting(redis_server)) == sorted(before[1:])
        assert not held(redis_server) and not names(redis_server)
        assert not redis_server.client.exists(REQUEUES), "these deliveries do not count"
    assert pushed(redis_server) == ["loose-a", "loose-b", "loose-c"]


def test_the_number_of_held_requests_is_bounded(redis_server, caplog):
    put(redis_server, "a", "b", "c")
    queue = make_queue(FifoQueue, redis_server, {"URLSEEN_HELD_MAX": 2})
    pages = [next_of(queue), next_of(queue)]
    assert queue.pop() is None
    assert "holds 2 requests (URLSEEN_HELD_MAX)" in caplog.text
    queue.deliveries.left(pages[0])
    assert next_of(queue).url.endswith("/c")
    queue.deliveries.close()


def test_the_beginning_of_a_reject_cuts_no_character():
    item = ("a" + "ü" * (32 << 20)).encode()
    fields = json.loads(write_reject(item, "ü" * 2000))
    assert fields["begins"] == "a" + "ü" * 2047
    assert fields["bytes"] == len(item) and "item" not in fields
    assert fields["reason"] == "ü" * 1024
