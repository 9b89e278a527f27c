"""Web site of linked pages. It counts how often each page is fetched."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Number of pages besides the first one. At least one page links to each of these pages.
PAGES = 100


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignores errors, because ending crawls break their connections."""


class Site:
    """Web site. `/` links to some pages, and each page to some others. No page links to `/`.

    Each link is written in one of several ways, which are the same request. `/broken` answers with
    status 503 while `is_broken` is true, and `/moved` redirects to `/broken`. `/cookies` links
    to `/cookie`, which redirects to itself once. Pages are answered only
    while `is_open` is set.
    """

    def __init__(self, pages: int = PAGES) -> None:
        self.hits: Counter[str] = Counter()
        self.is_broken = False
        self.is_open = threading.Event()
        self.is_open.set()
        draw = random.Random(7)
        self._links = {n: draw.sample(range(pages), 6) + [(n + 1) % pages] for n in range(pages)}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.is_open.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def page_hits(self) -> Counter[str]:
        """Returns how often each page was fetched."""
        return Counter({path: n for path, n in list(self.hits.items()) if path.startswith("/p/")})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # The head and the body of an answer are two writes.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                site.hits[path] += 1
                if path.startswith("/p/"):
                    site.is_open.wait()
                status, links = site._answer(path)
                body = "".join(f'<a href="{link}">{link}</a>' for link in links).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", links[0])
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _answer(self, path: str) -> tuple[int, list[str]]:
        if path == "/moved":
            return 302, ["/broken"]
        if path == "/broken":
            return (503 if self.is_broken else 200), []
        if path == "/cookie":
            return (302 if self.hits[path] == 1 else 200), ["/cookie?"]
        if path == "/cookies":
            return 200, ["/cookie"]
        if path == "/":
            return 200, [*map(_link, range(10)), "/moved"]
        page = re.fullmatch("/p/([0-9]+)", path)
        return (200, [_link(n) for n in self._links[int(page[1])]]) if page else (404, [])


def _link(n: int) -> str:
    return f"/p/{n}?" + random.choice(["x=1&y=2", "y=2&x=1", "y=2&x=1#top"])
