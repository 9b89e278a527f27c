"""Takes over the JOBDIR of a crawl with Scrapy's own scheduler and dupefilter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.misc import load_object

from urlseen.scrapy.settings import logger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy import Request
    from scrapy.crawler import Crawler

#: Exit statuses of the import: all fingerprints, or all but bad entries.
IMPORTED, PARTLY = 0, 1


def scrapys_requests(crawler: Crawler, queue: Path, copy: Path) -> Iterator[Request]:
    """Yields the requests of a `requests.queue` in their order. Leaves it as it is.

    Scrapy's queues remove what they read, so they read a copy, which is removed at the end. Raises
    `ValueError` if Scrapy did not close the queue.
    """
    check_closed(queue)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(queue, copy / queue.name)
    settings = crawler.settings
    scheduler = Scheduler(
        BaseDupeFilter(),
        jobdir=str(copy),
        dqclass=load_object(settings["SCHEDULER_DISK_QUEUE"]),
        mqclass=load_object(settings["SCHEDULER_MEMORY_QUEUE"]),
        pqclass=load_object(settings["SCHEDULER_PRIORITY_QUEUE"]),
        crawler=crawler,
    )
    assert crawler.spider is not None
    scheduler.open(crawler.spider)
    assert scheduler.dqs is not None
    number = 0
    for number, request in enumerate(iter(scheduler.dqs.pop, None), 1):
        yield request
    scheduler.dqs.close()
    shutil.rmtree(copy)
    logger.info("%d requests of %s are taken over", number, queue)


def check_closed(queue: Path) -> None:
    """Raises `ValueError` if a file of the queue is newer than the one that Scrapy writes last."""
    state = queue / "active.json"
    written = [it.stat().st_mtime_ns for it in queue.rglob("*") if it.is_file() and it != state]
    if written and (not state.exists() or max(written) > state.stat().st_mtime_ns):
        raise ValueError(
            f"Scrapy did not close {queue}, for example because it was killed, so requests in it are"
            " lost, and requests.seen would hide them. To begin anew, remove the JOBDIR. If the"
            f" queue was closed, and copied since then: touch {state}"
        )


def import_seen(seen: Path, folder: Path) -> None:
    """Imports a `requests.seen` into the filter in a folder. If the process is killed meanwhile, the
    next run continues the import.

    Raises `OSError` if the import fails.
    """
    command = [sys.executable, "-m", "urlseen", "import", str(seen.resolve()), "--json"]
    # The import must depend on no configuration of a daemon.
    env = {name: value for name, value in os.environ.items() if not name.startswith("URLSEEN_")}
    done = subprocess.run(
        [*command, "--storage", str(folder.resolve())],
        check=False,
        capture_output=True,
        text=True,
        env=env,
        cwd=folder,
    )
    if done.returncode not in (IMPORTED, PARTLY):
        raise OSError(f"{seen} cannot be imported: {done.stderr}")
    # A killed crawl leaves an incomplete fingerprint at the end.
    for line in done.stderr.splitlines():
        logger.warning(line)
    seen.rename(seen.with_name(seen.name + ".imported"))
    logger.info("%s is imported: %s", seen, done.stdout.strip())
