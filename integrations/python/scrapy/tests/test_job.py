"""Crawls in one process: their queue and filter, in a JOBDIR or in memory."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.scheduler import Scheduler

from conftest import make_crawler
from kills import crawl_with_kills
from pages import PAGES, Site
from queues import to
from urlseen.scrapy import LocalScheduler, forget
from urlseen.scrapy.record import Record


class Local(LocalScheduler):
    """Scheduler of a crawler that does not run, with its JOBDIR or without one."""

    def __init__(self, jobdir: Path | None = None, **settings: Any) -> None:
        super().__init__(make_crawler({"JOBDIR": jobdir and str(jobdir), **settings}))
        self.open(self._crawler.spider)

    @property
    def engine(self) -> Any:
        return self._crawler.engine

    def finish(self, page: Request, *links: Request) -> None:
        """Ends a page with these links."""
        self.find(page, *links)
        self.engine.finish(page)

    def find(self, page: Request, *links: Request) -> None:
        self.engine.page(page, *links)
        for link in self.engine.scraper.output:
            self.enqueue_request(link)

    def names(self) -> list[str]:
        """Pops all requests, and returns the paths of their URLs."""
        return [it.url.rpartition("/")[2] for it in iter(self.next_request, None)]


@pytest.fixture(autouse=True)
def commit_at_once(monkeypatch):
    monkeypatch.setattr("urlseen.scrapy.job_queue.COMMIT_S", 0.0)


@pytest.fixture
def jobdir(tmp_path):
    return tmp_path / "job"


@pytest.fixture
def killed(tmp_path, jobdir):
    """Returns a function that opens what a kill of the process would leave now."""
    numbers = iter(range(100))

    def copy(**settings: Any) -> Local:
        folder = tmp_path / f"killed-{next(numbers)}"
        shutil.copytree(jobdir, folder)
        return Local(folder, **settings)

    return copy


@pytest.mark.parametrize("has_power", [True, False])
def test_killed_crawls_fetch_every_page_and_few_twice(tmp_path, start_crawl, has_power):
    site = Site(60)
    try:
        jobdir = tmp_path / "job"
        crawl_with_kills(site, start_crawl, random.Random(5), jobdir, 60, 5, has_power)
    finally:
        site.close()


@pytest.mark.parametrize("has_jobdir", [False, True])
def test_requests_end_in_all_possible_ways(site, start_crawl, any_reactor, jobdir, has_jobdir):
    site.is_broken = True
    settings = {**any_reactor, "ADDONS": {"urlseen.scrapy.Addon": 500}, "RETRY_TIMES": 1}
    settings |= {"JOBDIR": str(jobdir)} if has_jobdir else {}
    crawl = start_crawl("Odd", settings, url=site.url)
    stats = crawl.wait()
    assert stats["finish_reason"] == "finished", crawl.log
    assert set(site.page_hits().values()) == {1} and len(site.page_hits()) == PAGES
    assert stats["spider_exceptions/RuntimeError"] > 5
    assert stats["retry/count"] and stats["errbacks"] and stats["ignored"]
    assert not has_jobdir or Local(jobdir).names() == []


@pytest.mark.parametrize("has_jobdir", [False, True])
@pytest.mark.parametrize(
    ("order", "expected"), [("lifo", "high b a 1 2 low"), ("fifo", "high 1 a 2 b low")]
)
def test_requests_come_by_priority_and_then_in_order(jobdir, has_jobdir, order, expected):
    queue = Local(jobdir if has_jobdir else None, URLSEEN_ORDER=order)
    start = {"is_start_request": True}
    requests = [to("low", priority=-1), to("1", meta=start), to("a"), to("2", meta=start), to("b")]
    for request in [*requests, to("high", priority=1 << 70), to("a")]:
        queue.enqueue_request(request)
    assert queue.has_pending_requests()
    assert queue.names() == expected.split()
    assert not queue.has_pending_requests()
    stats = queue._crawler.stats.get_stats()
    assert (stats["scheduler/enqueued"], stats["dupefilter/filtered"]) == (6, 1)


@pytest.mark.parametrize("has_jobdir", [False, True])
def test_the_slot_with_the_fewest_downloads_comes_first(jobdir, has_jobdir):
    queue = Local(jobdir if has_jobdir else None, URLSEEN_ORDER="fifo")
    for host in "aaabbcc":
        queue.enqueue_request(Request(f"https://{host}.example/", dont_filter=True))
    queue.engine.downloader.slots["b.example"] = SimpleNamespace(active={"a page"})
    assert "".join(iter(lambda: (queue.next_request() or to("")).url[8:9], "e")) == "acacabb"


def test_a_page_ends_together_with_its_links(jobdir, killed):
    queue = Local(jobdir, URLSEEN_ORDER="fifo")
    queue.enqueue_request(to("page"))
    page = queue.next_request()
    queue.find(page, to("1"), to("2", dont_filter=True), to("1"))
    assert killed().names() == ["page"], "its links are found again"
    queue.engine.finish(page)
    assert killed(URLSEEN_ORDER="fifo").names() == ["1", "2"]
    again = killed()
    assert not again.enqueue_request(to("1")) and not again.enqueue_request(to("page"))


def test_at_most_as_many_pages_are_in_work_as_are_downloaded_at_a_time(jobdir):
    queue = Local(jobdir, CONCURRENT_REQUESTS=2)
    for name in ("1", "2", "3"):
        queue.enqueue_request(to(name))
    pages = [queue.next_request() for _ in range(3)]
    assert pages[2] is None
    queue.finish(pages[0])
    assert queue.next_request() is not None


def test_two_pages_with_the_same_link_record_it_once(jobdir, killed):
    queue = Local(jobdir)
    for name in ("a", "b"):
        queue.enqueue_request(to(name))
    pages = [queue.next_request(), queue.next_request()]
    for page in pages:
        queue.find(page, to("link"))
    queue.engine.finish(pages[1])
    # The page that is still in work, and found the link first, may not hide it.
    assert sorted(killed().names()) == [pages[0].url.rpartition("/")[2], "link"]
    queue.engine.finish(pages[0])
    assert killed().names() == ["link"]


def test_links_of_an_unfinished_page_are_recorded_if_nothing_else_waits(
    jobdir, killed, monkeypatch
):
    queue = Local(jobdir)
    queue.enqueue_request(to("page"))
    page = queue.next_request()
    queue.find(page, to("1"), to("2", dont_filter=True))
    assert queue.next_request().url.endswith("/1"), "links with dont_filter wait for the end"
    assert sorted(killed().names()) == ["1", "page"]
    monkeypatch.setattr("urlseen.scrapy.job_queue.EARLY", 2)
    queue.find(page, to("3"), to("4"))
    assert sorted(killed().names()) == ["1", "3", "4", "page"]


def test_a_retry_takes_the_place_of_its_request(jobdir, killed):
    queue = Local(jobdir)
    queue.enqueue_request(to("page"))
    page = queue.next_request()
    retry = page.replace(dont_filter=True, meta={"retry_times": 1})
    queue.engine._handle_downloader_output(retry, page)
    queue.enqueue_request(retry)
    assert "retry_times" not in killed().next_request().meta
    queue.engine.finish(page)
    assert killed().next_request().meta == {"retry_times": 1}


def test_a_request_that_cannot_be_serialized_keeps_its_page_in_work(jobdir, killed):
    queue = Local(jobdir)
    queue.enqueue_request(to("page"))
    page = queue.next_request()
    queue.finish(page, to("kept", callback=lambda response: None))
    assert killed().names() == ["page"]
    kept = queue.next_request()
    queue.engine.finish(kept)
    assert killed().names() == []
    queue = Local()
    assert queue.enqueue_request(to("kept", callback=lambda response: None))
    assert not queue._kept and queue.names() == ["kept"], "memory keeps every request"


def test_the_filter_gets_keys_only_after_a_sync_of_the_queue(jobdir, killed, monkeypatch):
    queue = Local(jobdir)
    job = queue.deliveries
    queue.enqueue_request(to("1"))
    digest = queue._fingerprinter.fingerprint(to("1"))
    assert job.is_seen(to("1"), digest) and digest not in job._filter
    commit_synced, synced = Record.commit_synced, []

    def check(self):
        synced.append(self)
        assert digest not in job._filter
        commit_synced(self)
        assert self.db.execute("SELECT count(*) FROM fresh").fetchone() == (1,)

    monkeypatch.setattr(Record, "commit_synced", check)
    monkeypatch.setattr("urlseen.scrapy.job_queue.SYNC_S", 0.0)
    queue.next_request()
    assert synced and digest in job._filter and not job._record.fresh
    monkeypatch.undo()
    # The rows of these keys are deleted with the next commit, so a kill before it adds them again.
    assert digest in killed().deliveries._filter


def test_a_forgotten_request_passes_again(jobdir, killed):
    queue = Local(jobdir)
    for is_synced in (False, True):
        queue.enqueue_request(to("1"))
        if is_synced:
            queue.deliveries._record.sync()
        assert forget(to("1"), queue._crawler)
        assert killed().enqueue_request(to("1"))
        assert queue.enqueue_request(to("1"))
    queue.close("finished")
    memory = Local()
    for _ in range(2):
        assert memory.enqueue_request(to("1")) and not memory.enqueue_request(to("1"))
        assert forget(to("1"), memory._crawler)


def test_a_full_disk_ends_the_crawl_at_its_last_commit(jobdir, killed, monkeypatch, caplog):
    ended = []
    monkeypatch.setattr("urlseen.scrapy.pages.close_spider", lambda _, reason: ended.append(reason))
    queue = Local(jobdir)
    for name in ("a", "b"):
        queue.enqueue_request(to(name))
    pages = [queue.next_request(), queue.next_request()]
    queue.deliveries._db.execute("PRAGMA max_page_count = 8")
    links = [to(f"{n}{'x' * 9000}") for n in range(3)]
    queue.finish(pages[0], *links)
    assert ended == ["urlseen_disk"]
    assert "database or disk is full. It has everything up to its last commit" in caplog.text
    # The rest of the crawl writes nothing, because queue and memory differ now.
    queue.finish(pages[1], *links)
    queue.enqueue_request(to("c"))
    assert queue.next_request() is None and not queue.has_pending_requests()
    queue.close("urlseen_disk")
    after = Local(jobdir)
    assert sorted(after.names()) == ["a", "b"]
    assert after.enqueue_request(links[0])


def test_an_item_that_cannot_be_read_stays_for_the_next_run(jobdir, monkeypatch):
    queue = Local(jobdir)
    queue.enqueue_request(to("1"))
    with monkeypatch.context() as context:
        context.setattr(Local, "_request", None)
        assert queue.next_request() is None
    queue.close("finished")
    assert queue._crawler.stats.get_value("urlseen/unreadable") == 1
    assert Local(jobdir).names() == ["1"]


@pytest.mark.parametrize("serializer", ["pickle", "json"])
@pytest.mark.parametrize("digits", [8, 20])
def test_a_stored_request_is_the_same(jobdir, digits, serializer):
    queue = Local(jobdir, URLSEEN_SERIALIZER=serializer)
    queue._fingerprinter = SimpleNamespace(fingerprint=lambda _: b"\t" * digits)
    request = to("1", method="POST", body=b"\t\t\x00\t", meta={"tabs": "\t" * 9}, priority=9)
    assert queue.enqueue_request(request) and not queue.enqueue_request(to("2"))
    back = queue.next_request()
    assert back.to_dict(spider=queue.spider) == request.to_dict(spider=queue.spider)


def plain(jobdir: Path, settings: dict[str, Any], requests: list[Request]) -> Scheduler:
    """Leaves requests in a JOBDIR of Scrapy's own scheduler."""
    crawler = make_crawler({"JOBDIR": str(jobdir), **settings})
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    for request in requests:
        scheduler.enqueue_request(request)
    return scheduler


QUEUES = [
    {},
    {"SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"},
    {
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.MarshalFifoDiskQueue",
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    },
]


@pytest.mark.parametrize("settings", QUEUES)
def test_a_jobdir_of_scrapy_is_taken_over_once(jobdir, killed, settings, monkeypatch):
    requests = [to("1"), to("2"), to("high", priority=5, dont_filter=True), to("3")]
    plain(jobdir, settings, requests).close("shutdown")
    with monkeypatch.context() as context:
        # A kill before the queue has its new name, and one before the seen requests are imported.
        context.setattr(Path, "rename", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Local(jobdir, **settings)
    for repeated in (killed(**settings), killed(**settings)):
        expected = ["high", "1", "2", "3"] if settings else ["high", "3", "2", "1"]
        assert repeated.enqueue_request(to("new")) and not repeated.enqueue_request(to("2"))
        assert repeated.names() == [expected[0], "new", *expected[1:]]
        assert repeated._crawler.stats.get_value("scheduler/dequeued") == 5
        repeated.close("finished")
    folder = Path(repeated._crawler.settings["JOBDIR"])
    plain(folder, settings, []).close("shutdown")
    assert len(Local(folder, **settings).names()) == 5, "no page of them was finished"
    names = {"requests.queue.imported", "requests.seen.imported", "urlseen"}
    assert {it.name for it in folder.iterdir()} == names
    assert not (folder / "urlseen/taken").exists()


def test_a_queue_that_scrapy_did_not_close_is_refused(jobdir):
    scheduler = plain(jobdir, {}, [to("1"), to("2")])
    with pytest.raises(ValueError, match="Scrapy did not close"):
        Local(jobdir)
    assert (jobdir / "requests.seen").exists()
    scheduler.close("shutdown")
    # The files of the next crawl are newer than its state.
    scheduler = plain(jobdir, {}, [to("3")])
    scheduler.dqs.close()
    with pytest.raises(ValueError, match="touch .*active.json"):
        Local(jobdir)
