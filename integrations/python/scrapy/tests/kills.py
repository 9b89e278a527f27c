"""Crawls with a JOBDIR that are killed again and again. The log of the site is the oracle.

kills.py [--pages 2000] [--kills 40] [--rounds 5] [--seed 1] [--no-power]
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import Crawl, starter
from pages import Site

CONCURRENT = 8
SETTINGS = {
    "ADDONS": {"urlseen.scrapy.Addon": 500},
    "CONCURRENT_REQUESTS": CONCURRENT,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT,
    # A sync comes often, so that kills hit it.
    "TEST_PATCH": {"urlseen.scrapy.job_queue.SYNC_S": 0.05},
}
#: Methods in which a process kills itself, with the number of calls for a page.
PLACES = {
    "crawl.Links.parse": 1.0,
    "urlseen.scrapy.LocalScheduler.enqueue_request": 7.0,
    "urlseen.scrapy.LocalScheduler.next_request": 2.0,
    "urlseen.scrapy.job_queue.Job._finish_if_over": 1.0,
    "urlseen.scrapy.record.Record.insert": 1.0,
    "urlseen.scrapy.record.Record.commit": 1.2,
    "urlseen.scrapy.record.Record.commit_synced": 0.1,
    "urlseen.scrapy.record.Record.sync": 0.1,
}


def crawl_with_kills(
    site: Site,
    start: Callable[..., Crawl],
    draw: random.Random,
    jobdir: Path,
    pages: int,
    kills: int,
    has_power: bool = True,
    **more: Any,
) -> dict[str, int]:
    """Crawls a site of so many pages, with so many kills. Returns numbers of fetched pages.

    Without power, a kill also takes from the queue what was not synced, but nothing from the filter.
    Raises `AssertionError` if a page was not fetched, or if more pages were fetched twice than the
    killed processes had in work.
    """
    settings = {**SETTINGS, "JOBDIR": str(jobdir), **more, "TEST_COPY_SYNCED": not has_power}
    done = 0
    for number in range(kills + 1):
        is_last = number == kills
        # Number of pages until the kill: all kills together leave some pages for the last process.
        life = draw.uniform(0, 1.8 * pages / (kills + 1))
        place = draw.choice([None, *PLACES])
        kill = {}
        if place is not None and not is_last:
            calls = 1 + int(life * PLACES[place])
            kill = {"TEST_KILL": (place, calls, draw.random() < 0.5)}
        crawl = start("Links", settings | kill, url=site.url)
        if place is None and not is_last:
            wanted = len(site.page_hits()) + life
            while len(site.page_hits()) < wanted and crawl.process.is_alive():
                time.sleep(0.002)
            crawl.process.kill()
        crawl.end()
        twice = sum(site.page_hits().values()) - len(site.page_hits())
        is_right = twice <= done * CONCURRENT or not has_power
        assert is_right, f"{twice} pages were fetched twice after {done} kills"
        done += crawl.process.exitcode == -9
        if crawl.process.exitcode == -9 and not has_power:
            lose_power(jobdir)
        if crawl.process.exitcode == 0:
            break
    stats = crawl.wait()
    assert stats["finish_reason"] == "finished", crawl.log
    missing = {f"/p/{n}" for n in range(pages)} - set(site.page_hits())
    assert not missing, f"{len(missing)} pages were not fetched: {sorted(missing)[:5]}"
    return {"pages": pages, "kills": done, "fetched twice": twice}


def lose_power(jobdir: Path) -> None:
    """Puts the queue back to its last sync."""
    for each in (jobdir / "urlseen").glob("queue.sqlite*"):
        each.unlink()
    if (jobdir / "synced.sqlite").exists():
        shutil.copy(jobdir / "synced.sqlite", jobdir / "urlseen/queue.sqlite")


def main() -> None:
    """Runs the rounds, each with a new site and a new JOBDIR."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("pages", 2000), ("kills", 40), ("rounds", 5), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--no-power", action="store_true")
    wanted = parser.parse_args()
    for seed in range(wanted.seed, wanted.seed + wanted.rounds):
        with tempfile.TemporaryDirectory() as folder:
            site = Site(wanted.pages)
            try:
                start = starter(Path(folder), [])
                found = crawl_with_kills(
                    site,
                    start,
                    random.Random(seed),
                    Path(folder, "job"),
                    wanted.pages,
                    wanted.kills,
                    has_power=not wanted.no_power,
                    URLSEEN_ORDER=("lifo", "fifo")[seed % 2],
                )
                print(f"seed {seed}:", found, flush=True)
            finally:
                site.close()


if __name__ == "__main__":
    main()
