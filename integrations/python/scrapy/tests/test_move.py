"""The command `python -m urlseen.scrapy`: a crawl moves from its JOBDIR to a daemon."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pages import PAGES
from queues import moved, to
from servers import until
from test_job import Local
from urlseen.scrapy import __main__ as command
from urlseen.scrapy.record import Record

JOB = {
    "ADDONS": {"urlseen.scrapy.Addon": 500},
    "CONCURRENT_REQUESTS": 4,
}


def run(*words):
    """Runs the command, and returns its output."""
    words = [sys.executable, "-m", "urlseen.scrapy", *map(str, words)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_a_killed_crawl_moves_to_a_daemon(redis_server, run_urlseen, site, start_crawl, tmp_path):
    jobdir = tmp_path / "job"
    crawl = start_crawl("Links", {**JOB, "JOBDIR": str(jobdir)}, url=f"{site.url}p/0")
    until(lambda: len(site.page_hits()) > PAGES // 3, "some pages")
    crawl.process.kill()
    crawl.end()
    lines = run("list", jobdir).splitlines()
    assert len(lines) > 10 and all(
        line.split("\t")[1:3] == ["0", "GET"] and site.url in line for line in lines
    )

    pushed = run("move", jobdir, redis_server.url, "demo:discovered")
    assert f"pushed {len(lines)} requests to demo:discovered" in pushed
    assert run("list", jobdir) == ""
    settings = (line.replace('"', "").split(" = ") for line in pushed.splitlines()[1:])
    run_urlseen({**dict(settings), "sink.kind": "zset"})
    crawl = start_crawl("Links", {**JOB, **moved(redis_server.url)}, url=f"{site.url}p/0")
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    hits = site.page_hits()
    assert set(hits) == {f"/p/{n}" for n in range(PAGES)}
    # Requests in work are fetched again. The start requests of both crawls and one link pass, too.
    assert sum(hits.values()) <= PAGES + 4 + 3


def test_a_repeated_move_pushes_no_request_twice(redis_server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "BATCH", 2)
    queue = Local(tmp_path)
    more = {"priority": 3, "meta": {"ttl": "6d"}}
    requests = [to("1"), to("2", dont_filter=True), to("3", **more), to("4"), to("5")]
    for request in requests:
        queue.enqueue_request(request)
    assert queue.next_request().url.endswith("/3")
    queue.deliveries._record.commit()
    listed = [line.split("\t")[:2] for line in run("list", tmp_path).splitlines()]
    assert listed == [["in work", "3"], *4 * [["waiting", "0"]]]
    queue.close("shutdown")
    words = ["move", str(tmp_path), redis_server.url, "demo:discovered"]
    monkeypatch.setattr(sys, "argv", ["urlseen.scrapy", *words])
    commit, numbers = Record.commit, iter([1, 2])

    def die_before_second_commit(self):
        # The first commit is that of the constructor.
        if next(numbers, 3) == 3:
            raise SystemExit("killed")
        commit(self)

    with monkeypatch.context() as context, pytest.raises(SystemExit, match="killed"):
        context.setattr(Record, "commit", die_before_second_commit)
        command.main()
    command.main()
    assert "pushed 3 requests" in capsys.readouterr().out
    items = redis_server.client.lrange("demo:discovered", 0, -1)
    flags = sorted(item.split(b"\t")[1] for item in items)
    assert flags == sorted([b"&dont_filter"] * 4 + [b"&priority=3&ttl=6d&dont_filter"])
    assert len({item.split(b"\t")[0] for item in items}) == 5
    monkeypatch.setattr(sys, "argv", ["urlseen.scrapy", "list", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match="no crawl used this JOBDIR"):
        command.main()


def test_a_move_that_is_refused_deletes_and_pushes_nothing(redis_server, tmp_path, monkeypatch):
    queue = Local(tmp_path)
    queue.enqueue_request(to("1"))
    queue.close("shutdown")
    words = ["urlseen.scrapy", "move", str(tmp_path), redis_server.url, "demo:discovered"]
    monkeypatch.setattr(sys, "argv", words)
    redis_server.client.set("demo:discovered", "no list")
    with pytest.raises(SystemExit, match="WRONGTYPE"):
        command.main()
    redis_server.client.delete("demo:discovered")
    command.main()
    assert redis_server.client.llen("demo:discovered") == 1 and run("list", tmp_path) == ""
