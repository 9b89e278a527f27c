"""Web site whose pages change. It logs when each page is fetched."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from typing import Any

from pages import Site

#: Number of pages of each kind.
EACH = 5
KINDS = ["/page/", "/news/", "/archive/", "/archive/ticker/", "/shop/"]
#: Number of seconds between two changes of a page of the shop.
CHANGE_S = 3


@dataclass(frozen=True)
class Fetch:
    """Fetch of a page. Both times are those of the site's clock."""

    #: Time at which the site served the page with the link that led to this fetch.
    found: float
    at: float


class ChangingSite(Site):
    """Web site whose first page links to all pages that are published. Other pages link to some.

    From the first fetch on, the site publishes pages of each kind one after another. The news have
    another host name. The attribute `data-meta` of a link is the meta for its request. The header
    `Time` of an answer is the time at which the site made it. A spider that follows a link of the
    answer sends this time in the header `Found`.
    """

    def __init__(self) -> None:
        self.fetches: defaultdict[str, list[Fetch]] = defaultdict(list)
        self._draw = random.Random(7)
        self._time_of_day = time.time() - time.monotonic()
        #: Time of the first fetch.
        self._start = float("inf")
        super().__init__()

    def last_change(self, path: str, at: float) -> float:
        """Returns when a page of the shop changed last before `at`. This is half a second after the
        start of a generation."""
        first = _number(path) + 0.5 - self._time_of_day
        return first + (at - first) // CHANGE_S * CHANGE_S

    def _published(self, now: float) -> list[str]:
        """Returns the paths of all pages that are published."""
        self._start = min(self._start, now)
        # The pages are let through at different times after the start of a generation.
        numbers = range(min(EACH, 1 + int((now - self._start) / 0.37)))
        return [f"{kind}{n}" for n in numbers for kind in KINDS]

    def _meta(self, path: str, now: float) -> dict[str, Any]:
        if "/ticker/" in path:
            return {"ttl": 1 if _number(path) % 2 else "1s"}
        if path.startswith("/shop/"):
            date = self._time_of_day + self.last_change(path, now)
            text = datetime.fromtimestamp(date, timezone.utc).isoformat()
            return {"lastmod": date if _number(path) % 2 else text}
        return {}

    def _link(self, path: str, now: float) -> str:
        url = self.url.replace("127.0.0.1", "localhost") if path.startswith("/news/") else self.url
        meta = json.dumps(self._meta(path, now))
        return f"<a href='{url}{path[1:]}' data-meta='{meta}'>{path}</a>"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                now = time.monotonic()
                paths = site._published(now)
                if self.path != "/":
                    site.fetches[self.path].append(Fetch(float(self.headers["Found"]), now))
                    paths = site._draw.sample(paths, EACH)
                body = "".join(site._link(path, now) for path in paths).encode()
                self.send_response(200)
                self.send_header("Time", str(now))
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _number(path: str) -> int:
    return int(path.rpartition("/")[2])
