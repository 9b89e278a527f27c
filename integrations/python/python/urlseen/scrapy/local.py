"""Dupefilter of a crawl in one process, without a daemon."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir

from urlseen._urlseen import Filter
from urlseen.scrapy.fingerprinter import Fingerprinter, Options, fingerprinter_of
from urlseen.scrapy.settings import refusal

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

logger = logging.getLogger(__name__)

#: Folder of the filter in the JOBDIR.
FOLDER = "urlseen"

#: File with the fingerprints of Scrapy's own dupefilter in the JOBDIR.
SEEN = "requests.seen"

#: Exit statuses of the import: all fingerprints, or all but bad entries.
IMPORTED, PARTLY = 0, 1


class LocalDupeFilter(RFPDupeFilter):
    """Dupefilter with a filter in memory, which is stored in the JOBDIR if there is one.

        DUPEFILTER_CLASS = "urlseen.scrapy.LocalDupeFilter"

    A killed crawl has not forgotten what it saw: each new fingerprint is written to the folder
    `urlseen` in the JOBDIR before the request goes on. A `requests.seen` of Scrapy's own dupefilter
    is imported first, and then renamed to `requests.seen.imported`. A second process with the same
    JOBDIR is refused, and so is a `Fingerprinter` with other rules than those of the folder.

    `URLSEEN_CAPACITY` is the first size of the filter, 1,000,000 requests; it grows.
    `URLSEEN_ERROR_RATE` is the share of new requests that it takes for seen ones when it has grown
    to a hundred times this size, 1e-6. Both belong to the folder once it exists.
    """

    def __init__(
        self,
        fingerprinter: RequestFingerprinterProtocol,
        jobdir: str | None = None,
        capacity: int | None = None,
        error_rate: float | None = None,
        debug: bool = False,
    ) -> None:
        super().__init__(debug=debug, fingerprinter=fingerprinter)
        self._fingerprinter = fingerprinter
        self._jobdir = Path(jobdir) if jobdir else None
        self._size = (capacity, error_rate)
        self._filter: Filter | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Makes the filter for a crawler. Scrapy's scheduler calls this method."""
        settings = crawler.settings
        return cls(
            fingerprinter_of(crawler),
            job_dir(settings),
            settings.getint("URLSEEN_CAPACITY") or None,
            settings.getfloat("URLSEEN_ERROR_RATE") or None,
            settings.getbool("DUPEFILTER_DEBUG"),
        )

    @refusal()
    def open(self) -> None:
        """Opens the filter.

        Raises `OSError` if another process uses the JOBDIR, or if the folder cannot be read, and
        `ValueError` if the folder has the fingerprints of another algorithm or of other rules.
        """
        if self._jobdir is None:
            self._filter = Filter(*self._size)
            return
        folder = self._jobdir / FOLDER
        # An existing folder keeps the size that it was made for.
        size = () if (folder / "header").exists() else self._size
        fingerprinter = self._fingerprinter
        options: Options = {}
        if isinstance(fingerprinter, Fingerprinter):
            options = fingerprinter.options
        self._filter = Filter.open(folder, *size, **options)
        seen = self._jobdir / SEEN
        if seen.exists():
            self._filter.close()
            take_over(seen, folder)
            self._filter = Filter.open(folder, **options)

    def request_seen(self, request: Request) -> bool:
        """Returns `True` if the request has been seen. Adds it to the filter otherwise."""
        if self._filter is None:
            raise RuntimeError("the dupefilter is not open")
        return not self._filter.add(self._fingerprinter.fingerprint(request))

    def close(self, reason: str) -> None:
        """Closes the filter, with all requests on the disk."""
        if self._filter is not None:
            self._filter.close()


def take_over(seen: Path, folder: Path) -> None:
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
    seen.rename(seen.with_name(SEEN + ".imported"))
    logger.info("%s is imported: %s", seen, done.stdout.strip())
