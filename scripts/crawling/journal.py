"""Journal of a spider's crawl. A kill at any moment loses no entry.

The file has a line for the first link to each page, for each popped request, and for each finished
page, whose links are all in the scheduler. A second file has a byte for each link, and a third one
has a byte for the present activity of the spider.
"""

import os
import time
from collections import Counter
from pathlib import Path

from w3lib.url import canonicalize_url

#: The spider pops a request. After a kill at this moment, the request would be unknown.
POPPING = b"p"
#: The spider passes the links of a page to the scheduler, and some links are left.
HANDING_ON = b"h"
NEITHER = b"n"


class Writer:
    """Writer of the journal, in the spider."""

    def __init__(self, path):
        self._lines = open(path, "w", buffering=1)
        self._links = os.open(f"{path}.links", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._at = os.open(f"{path}.at", os.O_WRONLY | os.O_CREAT)
        self._pages = {}
        self._known = set()
        #: For each request object: the page on which it was found.
        self._found = {}
        self._has_been_idle = False

    def found(self, request, page):
        """Notes that the request was found on the page and goes to the scheduler."""
        page.open_links += 1
        self._found[id(request)] = (request, page)

    def hands_on(self, request):
        """Notes that the scheduler now gets the request."""
        os.write(self._links, b".")
        self._is_at(HANDING_ON)
        name = self._name(request)
        if name not in self._known:
            self._known.add(name)
            self._note("link", name)

    def handed_on(self, request):
        """Notes that the scheduler has queued or dropped the request."""
        _, page = self._found.pop(id(request), (None, None))
        if page is not None:
            page.open_links -= 1
            self.done_if_all(page)

    def done_if_all(self, page):
        """Notes that the page is finished, if the scheduler has all of its links."""
        if page.is_read and page.open_links == 0:
            self._note("done", self._name(page.request), str(page.status))
            self._is_at(NEITHER)

    def pops(self):
        """Notes that the spider asks for a request."""
        self._is_at(POPPING)

    def popped(self, request):
        """Notes that the spider got a request, or none."""
        if request is not None:
            self._note("pop", self._name(request))
        self._is_at(NEITHER)

    def idle(self):
        """Notes that the spider is idle."""
        if not self._has_been_idle:
            self._has_been_idle = True
            self._note("idle")

    def _is_at(self, what):
        os.pwrite(self._at, what, 0)

    def _name(self, request):
        """Returns the canonical URL of a page. Links to the same page can differ in the fragment."""
        url = request.url.partition("#")[0]
        if url not in self._pages:
            self._pages[url] = canonicalize_url(url)
        return self._pages[url]

    def _note(self, *words):
        # A line is one write. A URL contains no tab.
        self._lines.write("\t".join((words[0], repr(time.time()), *words[1:])) + "\n")


class Page:
    """Page whose links go to the scheduler one by one."""

    def __init__(self, response):
        self.request = response.request
        self.status = response.status
        self.open_links = 0
        self.is_read = False


class Reader:
    """Reader of the journal. It may read at any time."""

    def __init__(self, path):
        self.path = Path(path)
        self._at = 0
        #: `True` after the spider's first idle moment. Before, it may be unable to end cleanly.
        self.has_been_idle = False
        self.linked = set()
        self.popped = Counter()
        self.done = Counter()
        self.first = self.last = None

    def update(self):
        """Reads the new lines. Returns the reader."""
        if not self.path.exists():
            return self
        with self.path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
        # The last line may be incomplete.
        new = new[: new.rfind(b"\n") + 1]
        self._at += len(new)
        for line in new.decode().splitlines():
            self._read(*line.split("\t"))
        return self

    def has_begun(self):
        """Returns `True` after the first popped request or idle moment of the spider."""
        return self.first is not None or self.has_been_idle

    def held(self):
        """Returns the pages that were popped and are not finished."""
        return set(self.popped) - {url for url, _ in self.done}

    def links(self):
        """Returns the number of links that the scheduler got."""
        links = Path(f"{self.path}.links")
        # A spider can be killed before it makes the file.
        return links.stat().st_size if links.exists() else 0

    def is_handing_on(self):
        """Returns `True` if a kill now would come between two links of a page."""
        return Path(f"{self.path}.at").read_bytes() == HANDING_ON

    def _read(self, what, when, *words):
        if what == "idle":
            self.has_been_idle = True
        elif what == "link":
            self.linked.update(words)
        elif what == "pop":
            self.first = self.first or float(when)
            self.popped[words[0]] += 1
        elif what == "done":
            self.last = float(when)
            self.done[words[0], int(words[1])] += 1
