"""Real crawls in one process, with the add-on and no server."""

from __future__ import annotations

import http.server
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import urlseen

PAGES = 60

SPIDER = """
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Demo(scrapy.Spider):
    name = "demo"

    async def start(self):
        yield scrapy.Request(sys.argv[1])

    def parse(self, response):
        print(response.url, flush=True)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)

process = CrawlerProcess({
    "ADDONS": {"urlseen.scrapy.Addon": 500},
    "LOG_LEVEL": "INFO",
    "CONCURRENT_REQUESTS": 4,
    **eval(sys.argv[2]),
})
crawler = process.create_crawler(Demo)
process.crawl(crawler)
process.start()
print("filtered", crawler.stats.get_value("dupefilter/filtered"), file=sys.stderr)
"""


class Site(http.server.BaseHTTPRequestHandler):
    """Pages that link to each other: page N to N + 1 to N + 5, in two spellings."""

    pause = 0.0
    #: True if each link has a session id of its own.
    has_sessions = False
    links = itertools.count()

    def do_GET(self) -> None:
        number = int(self.path.rpartition("/")[2].partition("?")[0])
        targets = [other for other in range(number + 1, number + 6) if other < PAGES]
        links = [f"/page/{other}?{query}" for other in targets for query in ("a=1&b=2", "b=2&a=1")]
        if self.has_sessions:
            links = [f"{link}&sid={next(self.links)}" for link in links]
        page = "".join(f'<a href="{link}">{link}</a>' for link in links).encode()
        time.sleep(self.pause)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/page/0"
    server.shutdown()
    server.server_close()


def crawl(site: str, **settings: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SPIDER, site, repr(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    out, err = process.communicate(timeout=80)
    assert process.returncode == 0, err
    return out.split(), err


@pytest.mark.parametrize("jobdir", [False, True])
def test_a_crawl_fetches_each_page_once(site: str, jobdir: bool, tmp_path: Path) -> None:
    settings = {"JOBDIR": str(tmp_path / "job")} if jobdir else {}
    pages, log = ended(crawl(site, **settings))
    assert len(pages) == len(set(pages)) == PAGES
    assert "Filtered duplicate request" not in log
    assert "filtered None" not in log
    # The next crawl in the same JOBDIR knows all pages but the first, which Scrapy fetches again.
    if jobdir:
        again, _ = ended(crawl(site, **settings))
        assert again == []


def test_rules_let_a_crawl_fetch_each_page_once(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "has_sessions", True)
    rules = [{"path": "^/page/", "drop_params": ["sid"]}]
    pages, log = ended(crawl(site, URLSEEN_SAME=rules))
    assert len(pages) == len({page.partition("&sid=")[0] for page in pages}) == PAGES, log
    # The requests themselves keep their session ids.
    assert all("&sid=" in page for page in pages[1:])
    process = crawl(site, URLSEEN_SAME=[{"drop_param": ["sid"]}])
    _, err = process.communicate(timeout=80)
    assert "unknown field `drop_param`" in err, err


def test_a_jobdir_keeps_its_rules(site: str, tmp_path: Path) -> None:
    rules = [{"path": "^/page/", "drop_params": ["sid"]}]
    ended(crawl(site, JOBDIR=str(tmp_path), URLSEEN_SAME=rules))
    again, _ = ended(crawl(site, JOBDIR=str(tmp_path), URLSEEN_SAME=rules))
    assert again == []
    for other in ({}, {"URLSEEN_SAME": rules, "URLSEEN_DROP_TRACKING": "2026-11"}):
        out, err = crawl(site, JOBDIR=str(tmp_path), **other).communicate(timeout=80)
        assert out == "" and "the folder" in err and "has a filter with another spec" in err, err
        assert (": drop_tracking is 2026" if other else ": same is") in err, err


def test_a_killed_crawl_loses_no_page(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Site, "pause", 0.02)
    jobdir = tmp_path / "job"
    process = crawl(site, JOBDIR=str(jobdir))
    assert process.stdout is not None
    fetched = [process.stdout.readline().strip() for _ in range(PAGES // 2)]
    process.send_signal(signal.SIGKILL)
    fetched += process.communicate()[0].split()
    pages, _ = ended(crawl(site, JOBDIR=str(jobdir)))
    assert {*pages, *fetched} == {f"{site[:-1]}{n}?a=1&b=2" for n in range(1, PAGES)} | {site}
    assert len(set(pages) & set(fetched)) <= 4
    with urlseen.Filter.open(jobdir / "urlseen") as seen:
        assert all(seen.contains_many(map(urlseen.fingerprint, [*pages, *fetched])))


def test_a_second_process_with_the_same_jobdir_is_refused(site: str, tmp_path: Path) -> None:
    with urlseen.Filter.open(tmp_path / "urlseen"):
        process = crawl(site, JOBDIR=str(tmp_path))
        out, err = process.communicate(timeout=80)
    assert out == "" and f"in use by process {os.getpid()}" in err, err


def test_the_file_of_scrapys_own_dupefilter_is_taken_over(site: str, tmp_path: Path) -> None:
    pages, _ = ended(crawl(site, ADDONS={}, JOBDIR=str(tmp_path)))
    assert len(pages) == PAGES
    # A killed crawl leaves an incomplete fingerprint.
    with (tmp_path / "requests.seen").open("ab") as file:
        file.write(b"\0\x14abc")
    again, log = ended(crawl(site, JOBDIR=str(tmp_path)))
    assert again == [] and "incomplete fingerprint" in log, log
    assert not (tmp_path / "requests.seen").exists()
    assert (tmp_path / "requests.seen.imported").exists()
    with urlseen.Filter.open(tmp_path / "urlseen") as seen:
        assert len(seen) == PAGES


def test_the_size_belongs_to_the_folder(site: str, tmp_path: Path) -> None:
    ended(crawl(site, JOBDIR=str(tmp_path), URLSEEN_CAPACITY=5000, URLSEEN_ERROR_RATE=1e-4))
    command = [sys.executable, "-m", "urlseen", "storage", "show", "--json", "--storage"]
    shown = json.loads(subprocess.check_output([*command, str(tmp_path / "urlseen")]))
    assert shown["header"]["capacity"] == 5000
    again, _ = ended(crawl(site, JOBDIR=str(tmp_path), URLSEEN_ERROR_RATE=1e-9))
    assert again == []
